# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
"""Programs of this folder as modules: their names have no suffix."""

import importlib.machinery
import importlib.util
import os


def load_script(name):
    path = os.path.join(os.path.dirname(os.path.realpath(__file__)), name)
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module
