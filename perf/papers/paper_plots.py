# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The dimmnet authors
"""The pictures of `papers --plots`: published cells and modelled ones, drawn by gnuplot."""
import os
import shutil
import subprocess

# Fourteen that differ from their neighbours, light and dark in turn.
COLOURS = ["#1f3b73", "#8fb4e8", "#1b7f5c", "#a6dfc0", "#8a5a00", "#f2c14e", "#7a1f5c", "#e59ad0", "#a31515", "#f5a9a0",
           "#3d3d3d", "#b5b5b5", "#00707a", "#9fe3ea"]
STAGES = ["host_store", "host_to_nic", "stage_write_from_host", "stage_transaction_queue", "stage_header_lookup",
          "stage_size_decision", "stage_send_buffer", "stage_link_send", "stage_padding", "stage_outside",
          "stage_crossing", "stage_link_receive", "stage_memory_write", "host_read_4"]


def write_series(folder, name, rows):
    path = os.path.join(folder, name + ".dat")
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            file.write("\t".join(str(x) for x in row) + "\n")
    return path


def gnuplot(folder, name, title, ylabel, commands, width=900):
    script = "\n".join([
        f"set terminal pngcairo size {width},560", f"set output '{os.path.join(folder, name + '.png')}'",
        f"set title '{title}' noenhanced", f"set ylabel '{ylabel}'", "set grid ytics", "set key outside top right",
        "set style fill solid 0.8", commands, ""])
    subprocess.run(["gnuplot"], input=script.encode(), check=True)


def bars(folder, name, title, ylabel, cells, values, tables, width=900):
    """Published beside modelled."""
    rows = [(f'"{c["cell"]}"', c["published"], values[(c["table"], c["cell"])]) for c in cells if c["table"] in tables]
    path = write_series(folder, name, rows)
    gnuplot(folder, name, title, ylabel,
            "set style data histograms\nset xtics rotate by -45 font ',9' noenhanced\nset yrange [0:*]\nset rmargin 18\n"
            f"plot '{path}' using 2:xtic(1) title 'published' lc rgb '{COLOURS[0]}', '' using 3 title 'modelled' lc rgb '{COLOURS[3]}'",
            width)


def by_size(values, table):
    """{way: [(size, value)]} of cells called WAY.SIZE."""
    series = {}
    for (t, cell), value in values.items():
        if t == table:
            way, size = cell.rsplit(".", 1)
            series.setdefault(way, []).append((int(size), value))
    return series


def curves(folder, name, title, ylabel, values, table, logarithmic):
    parts = []
    for way, rows in by_size(values, table).items():
        path = write_series(folder, name + "-" + way, rows)
        parts.append(f"'{path}' using 1:2 with linespoints lw 2 pt 7 ps 0.5 title '{way}' noenhanced")
    gnuplot(folder, name, title, ylabel,
            ("set logscale x 2\n" if logarithmic else "") + "set yrange [0:*]\nset xlabel 'bytes'\nplot " + ", ".join(parts))


def breakdown(folder, profile):
    """The stages of an AOTF, in bars of all environments."""
    rows = []
    for letter in "abcdef":
        stages = profile("dimmnet1-" + letter)
        rows.append([f'"{letter.upper()}"'] + [stages[("value", s)] / 1000 for s in STAGES])
    path = write_series(folder, "breakdown", rows)
    parts = [f"'{path}' using {i + 2}{':xtic(1)' if i == 0 else ''} title '{s}' noenhanced lc rgb '{COLOURS[i]}'"
             for i, s in enumerate(STAGES)]
    gnuplot(folder, "breakdown", "One AOTF, by stages", "ns",
            "set style data histograms\nset style histogram rowstacked\nset boxwidth 0.6\nset key invert\nset yrange [0:*]\nplot "
            + ", ".join(parts))


def memcached(folder, cells, values):
    """Relative throughput over the size, published as points on the modelled lines; in a rack, and between racks."""
    table = "memcached_relative"
    lines = by_size(values, table)
    points = by_size({(c["table"], c["cell"]): c["published"] for c in cells}, table)
    panels = []
    for place in ("in_rack", "between_racks"):
        parts = []
        for i, way in enumerate(w for w in lines if w.startswith(place)):
            colour = f"lc rgb '{COLOURS[2 * i]}'"
            label = way.split(".", 1)[1].replace(".", " + ")
            path = write_series(folder, "memcached-" + way, lines[way])
            parts.append(f"'{path}' using 1:2 with lines lw 2 {colour} title '{label}' noenhanced")
            path = write_series(folder, "memcached-published-" + way, points[way])
            parts.append(f"'{path}' using 1:2 with points pt 7 ps 1.2 {colour} notitle")
        panels.append(f"set title '{place}' noenhanced\nplot " + ", ".join(parts))
    gnuplot(folder, "memcached", "", "percent of sockets + ax3630s",
            "set logscale x 2\nset xrange [14:600]\nset xtics (16,32,64,128,256,512)\nset xlabel 'bytes of a value'\nset yrange [0:500]\n"
            "set key inside bottom left\nset multiplot layout 1,2 title 'memcached GET, throughput (points: published)'\n"
            + "\n".join(panels) + "\nunset multiplot", 1100)


def uzura(folder, profile):
    """Blocks of 4 KB on their way through the three stages that work at the same time."""
    value = {key: v for (_, key), v in profile("uzura").items()}
    block = 4096
    source = value["dma_read_start"] / 1e6 + block / value["dma_rate"] * 1e6
    link = (block + value["header"]) / value["link_rate"] * 1e6
    target = block / value["dma_rate"] * 1e6
    rows = []
    free = [0, 0, 0]
    for number in range(4):
        start = 0
        for stage, took in enumerate((source, link, target)):
            start = max(start, free[stage])
            rows.append((start, 3 - stage, start + took, number))
            start += took
            free[stage] = start
    objects = [f"set object rectangle from {a},{y - 0.3} to {b},{y + 0.3} fc rgb '{COLOURS[2 * n]}'\n"
               f"set label '{n + 1}' at {(a + b) / 2},{y} center tc rgb 'white'" for a, y, b, n in rows]
    gnuplot(folder, "uzura", "UZURA: four blocks of 4 KB in the pipeline", "",
            "\n".join(objects) + "\nset ytics ('source PCI-X' 3, 'link' 2, 'destination PCI-X' 1)\nset yrange [0.4:3.6]\n"
            f"set xrange [0:{max(r[2] for r in rows) + 1}]\nset xlabel 'us'\nset grid xtics\nunset key\nplot -1")


def draw_all(folder, cells, values, profile):
    """All of them into a folder; profile(NAME) tells the values of a profile."""
    if shutil.which("gnuplot") is None:
        print("\nno plots: gnuplot is not installed (Debian package gnuplot-nox)")
        return
    os.makedirs(folder, exist_ok=True)
    breakdown(folder, profile)
    bars(folder, "round-trip", "AOTF round trip and loops by environment", "ns", cells, values, {"aotf_rtt"})
    bars(folder, "barrier-and-sum", "Barrier and global sum, 2 nodes", "ns", cells, values, {"barrier", "global_sum"}, 1300)
    curves(folder, "crossover", "BOTF against PUSH", "MB/s", values, "crossover_curve", False)
    curves(folder, "dimm-send", "DIMM_Send, DIMM_Recv", "MB/s", values, "dimm_send_curve", True)
    bars(folder, "ip-numa", "IP-NUMA against sockets, one way", "us", cells, values, {"ipnuma_one_way"})
    curves(folder, "fibnic", "Latency of a switch by frame size", "ns", values, "fibnic_curve", False)
    memcached(folder, cells, values)
    uzura(folder, profile)
    print(f"\nplots are in {folder}")
