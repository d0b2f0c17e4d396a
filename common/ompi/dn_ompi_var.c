/*
 * SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The dimmnet authors
 */
/** @file dn_ompi_var.c
 * MCA variables: the rows of dn_params.def.
 */
#include "dn_config.h"

#include "dn_ompi_int.h"

#include <limits.h>
#include <stdio.h>

dn_ompi_params_t dn_ompi_params;

/** Where the settings of each section are. */
static void *const dn_ompi_settings[DN_PARAM_SECTIONS] = {
    [DN_PARAM_PORT] = &dn_ompi_params.port, [DN_PARAM_TAG] = &dn_ompi_params.tag,
    [DN_PARAM_MPI] = &dn_ompi_params.mpi,   [DN_PARAM_BTL] = &dn_ompi_params.btl,
    [DN_PARAM_PML] = &dn_ompi_params.pml,   [DN_PARAM_MTL] = &dn_ompi_params.mtl,
    [DN_PARAM_COLL] = &dn_ompi_params.coll, [DN_PARAM_OSC] = &dn_ompi_params.osc,
};

/** By section: a value was not accepted, and the user has been told. */
static bool dn_ompi_refused[DN_PARAM_SECTIONS];

/**
 * The enumerator of a variable: it says which values the variable accepts. Its class belongs to this library, since Open MPI keeps the
 * object after the component has been unloaded. A value that is not accepted is reported here, and replaced by the default. Open MPI's own
 * parser would take "12x" for 12 and "abc" for 0.
 */
typedef struct dn_ompi_accept {
    mca_base_var_enum_t super;
    const dn_param_t *param;
    uint32_t standard; /**< the default */
} dn_ompi_accept_t;

static void dn_ompi_accept_construct(dn_ompi_accept_t *accept);
static OBJ_CLASS_INSTANCE(dn_ompi_accept_t, mca_base_var_enum_t, dn_ompi_accept_construct, NULL);

static const dn_param_t *dn_ompi_accept_param(const mca_base_var_enum_t *self)
{
    return ((const dn_ompi_accept_t *) self)->param;
}

/** mca_base_var_enum_t: get_count. Only words are listed: there are too many numbers. */
static int dn_ompi_accept_count(mca_base_var_enum_t *self, int *count)
{
    *count = (int) dn_param_words(dn_ompi_accept_param(self));
    return OPAL_SUCCESS;
}

/** mca_base_var_enum_t: get_value. */
static int dn_ompi_accept_value(mca_base_var_enum_t *self, int index, int *value, const char **text)
{
    const dn_param_t *param = dn_ompi_accept_param(self);

    if (0 > index || (uint32_t) index >= dn_param_words(param)) {
        return OPAL_ERR_VALUE_OUT_OF_BOUNDS;
    }
    *value = index;
    *text = param->word[index];
    return OPAL_SUCCESS;
}

/** mca_base_var_enum_t: dump. */
static int dn_ompi_accept_dump(mca_base_var_enum_t *self, char **text DN_OMPI_ENUM_DUMP_MORE)
{
    char accepted[DN_PARAM_TEXT];

    (void) dn_param_accepted(dn_ompi_accept_param(self), accepted, sizeof(accepted));
    *text = strdup(accepted);
    return NULL == *text ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

/** mca_base_var_enum_t: string_from_value. */
static int dn_ompi_accept_to_string(mca_base_var_enum_t *self, const int value, char **text)
{
    char shown[DN_PARAM_TEXT];

    if (NULL == text) {
        return OPAL_SUCCESS;
    }
    (void) dn_param_show(dn_ompi_accept_param(self), (uint32_t) value, shown, sizeof(shown));
    *text = strdup(shown);
    return NULL == *text ? OPAL_ERR_OUT_OF_RESOURCE : OPAL_SUCCESS;
}

/** mca_base_var_enum_t: value_from_string. */
static int dn_ompi_accept_from_string(mca_base_var_enum_t *self, const char *text, int *value_p)
{
    const dn_ompi_accept_t *accept = (const dn_ompi_accept_t *) self;
    char accepted[DN_PARAM_TEXT];
    uint32_t value;

    if (DN_OK != dn_param_parse(accept->param, text, &value)) {
        (void) dn_param_accepted(accept->param, accepted, sizeof(accepted));
        dn_ompi_help(DN_OMPI_TEXT_BAD_VALUE, opal_process_info.nodename, self->enum_name, text, accepted);
        dn_ompi_refused[accept->param->section] = true;
        value = accept->standard;
    }
    *value_p = (int) value;
    return OPAL_SUCCESS;
}

static void dn_ompi_accept_construct(dn_ompi_accept_t *accept)
{
    accept->super.get_count = dn_ompi_accept_count;
    accept->super.get_value = dn_ompi_accept_value;
    accept->super.value_from_string = dn_ompi_accept_from_string;
    accept->super.string_from_value = dn_ompi_accept_to_string;
    accept->super.dump = dn_ompi_accept_dump;
}

/** The parts of a name of Open MPI, such as common_dimmnet or coll_llcm. */
typedef struct dn_ompi_owner {
    const char *project;
    char framework[16];
    char component[16];
} dn_ompi_owner_t;

static dn_ompi_owner_t dn_ompi_owner(const char *name)
{
    dn_ompi_owner_t owner = {.project = "ompi"};

    (void) sscanf(name, "%15[^_]_%15[^ ]", owner.framework, owner.component);
    if (0 == strcmp(owner.framework, "common") || 0 == strcmp(owner.framework, "btl")) {
        owner.project = "opal";
    }
    return owner;
}

static int dn_ompi_param_find(const dn_param_t *param)
{
    const dn_ompi_owner_t owner = dn_ompi_owner(param->owner);

    return mca_base_var_find(owner.project, owner.framework, owner.component, param->name);
}

/** @param[in] accept  NULL: Open MPI's own parser takes any text, or any number. */
static void dn_ompi_param_register(const dn_param_t *param, dn_ompi_accept_t *accept)
{
    const dn_ompi_owner_t owner = dn_ompi_owner(param->owner);
    char accepted[DN_PARAM_TEXT], standard[DN_PARAM_TEXT];
    const mca_base_var_type_t type = DN_PARAM_KIND_NUMBER == param->kind ? MCA_BASE_VAR_TYPE_UNSIGNED_INT
                                     : DN_PARAM_KIND_LIST == param->kind ? MCA_BASE_VAR_TYPE_STRING
                                                                         : MCA_BASE_VAR_TYPE_INT;
    char *help = NULL;

    (void) dn_param_accepted(param, accepted, sizeof(accepted));
    (void) dn_param_default(param, standard, sizeof(standard));
    if (0 > asprintf(&help, "%s (%s%sdefault: %s; accepted: %s)", param->sentence, param->unit,
                     '\0' == param->unit[0] ? "" : "; ", '\0' == standard[0] ? "empty" : standard,
                     accepted)) {
        help = NULL;
    }
    (void) mca_base_var_register(owner.project, owner.framework, owner.component, param->name, help, type,
                                 NULL == accept ? NULL : &accept->super, 0, 0,
                                 (mca_base_var_info_lvl_t) (OPAL_INFO_LVL_1 + param->level - 1),
                                 MCA_BASE_VAR_SCOPE_READONLY,
                                 (char *) dn_ompi_settings[param->section] + param->offset);
    free(help);
}

/** Register a variable. Its setting has the default. */
static void dn_ompi_param_add(const dn_param_t *param)
{
    dn_ompi_accept_t *accept;

    /* An enumerator holds no number above INT_MAX. dn_open() checks lists, and numbers that may be so large. */
    if (DN_PARAM_KIND_LIST == param->kind || INT_MAX < param->high) {
        dn_ompi_param_register(param, NULL);
        return;
    }
    accept = OBJ_NEW(dn_ompi_accept_t);
    if (NULL == accept) {
        return;
    }
    if (0 > asprintf(&accept->super.enum_name, "%s_%s", param->owner, param->name)) {
        accept->super.enum_name = NULL;
    }
    accept->param = param;
    accept->standard =
        *(const uint32_t *) (const void *) ((const char *) dn_ompi_settings[param->section] + param->offset);
    dn_ompi_param_register(param, accept);
    OBJ_RELEASE(accept);
}

static mca_base_var_source_t dn_ompi_source(int index)
{
    mca_base_var_source_t source = MCA_BASE_VAR_SOURCE_DEFAULT;

    (void) mca_base_var_get_value(index, NULL, &source, NULL);
    return source;
}

/**
 * Let an old name stand for a variable. Open MPI warns of a deprecated name by the source that the variable had before Open MPI read that
 * name. So a name that was found in the environment is registered once more.
 */
static void dn_ompi_old_name(int index, const dn_ompi_owner_t *owner, const char *name)
{
    mca_base_var_source_t before = MCA_BASE_VAR_SOURCE_MAX;

    while (before != dn_ompi_source(index)
           && (MCA_BASE_VAR_SOURCE_MAX == before || MCA_BASE_VAR_SOURCE_ENV == dn_ompi_source(index))) {
        before = dn_ompi_source(index);
        (void) mca_base_var_register_synonym(index, owner->project, owner->framework, owner->component, name,
                                             MCA_BASE_VAR_SYN_FLAG_DEPRECATED);
    }
}

/** Let the old names of a variable stand for it. @param[in] of  Only the names of this component; NULL: all. */
static void dn_ompi_old_names(const dn_param_t *param, const mca_base_component_t *of)
{
    const int index = dn_ompi_param_find(param);

    for (const char *old = param->old; 0 <= index && '\0' != *old;
         old += strcspn(old, " "), old += ' ' == *old) {
        const dn_ompi_owner_t owner = dn_ompi_owner(old);

        if ((NULL == of
             || (0 == strcmp(of->mca_type_name, owner.framework)
                 && 0 == strcmp(of->mca_component_name, owner.component)))
            && 0 > mca_base_var_find(owner.project, owner.framework, owner.component, param->name)) {
            dn_ompi_old_name(index, &owner, param->name);
        }
    }
}

void dn_ompi_params_register(const mca_base_component_t *component, dn_param_section_t section)
{
    size_t count;
    const dn_param_t *param = dn_param_list(&count);
    bool is_new = true;

    for (size_t i = 0; i < count; i++) {
        is_new = is_new && (section != param[i].section || 0 > dn_ompi_param_find(&param[i]));
    }
    if (is_new) {
        dn_ompi_refused[section] = false;
        dn_param_defaults(section, dn_ompi_settings[section]);
    }
    for (size_t i = 0; i < count; i++) {
        if (section == param[i].section && is_new) {
            dn_ompi_param_add(&param[i]);
        }
        if (section == param[i].section) {
            /* A component may open the port before other components are registered. So the first component registers the old names
             * of all. When a framework was closed, the names of its component went with it: the component registers them again. */
            dn_ompi_old_names(&param[i], is_new ? NULL : component);
        }
    }
}

bool dn_ompi_params_refused(dn_param_section_t section)
{
    if (DN_PARAM_PORT == section
        && OPAL_SUCCESS
               != mca_base_var_check_exclusive("opal", "common", "dimmnet", "provider_include", "common",
                                               "dimmnet", "provider_exclude")) {
        return true; /* Open MPI has said why */
    }
    return dn_ompi_refused[section];
}

/** Are the first @p len characters of a word this name of a device? */
static bool is_device(const char *word, size_t len, const char *name)
{
    return strlen(name) == len && 0 == strncmp(word, name, len);
}

/** How far messages go by the devices of the list. The network that `auto` opens encrypts if `auth` asks for it. */
static enum list_reach { REACHES_HOST, REACHES_HOSTS, REACHES_HOSTS_ENCRYPTED } list_reaches(void)
{
    const char *word = dn_ompi_params.mpi.devices;
    enum list_reach most = REACHES_HOST;

    if (NULL != word && dn_ompi_far_is_auto(word)) {
        return dn_ompi_far_is_built() ? REACHES_HOSTS_ENCRYPTED : REACHES_HOST;
    }
    while (NULL != word && '\0' != *word) {
        const size_t len = strcspn(word, ":,");
        if (is_device(word, len, "ipnuma")) {
            return REACHES_HOSTS_ENCRYPTED;
        }
        /* These two devices reach only processes of the same host. */
        if (!is_device(word, len, "shm") && !is_device(word, len, "emulate")) {
            most = REACHES_HOSTS;
        }
        word += strcspn(word, ",");
        word += ',' == *word;
    }
    return most;
}

bool dn_ompi_leaves_host(void)
{
    return REACHES_HOST != list_reaches();
}

bool dn_ompi_encrypts(void)
{
    return REACHES_HOSTS_ENCRYPTED == list_reaches();
}

bool dn_ompi_yields(void)
{
    const int index = mca_base_var_find("ompi", "mpi", NULL, "yield_when_idle");
    const bool *yields = NULL;

    return 0 <= index && OPAL_SUCCESS == mca_base_var_get_value(index, &yields, NULL, NULL) && NULL != yields
           && *yields;
}
