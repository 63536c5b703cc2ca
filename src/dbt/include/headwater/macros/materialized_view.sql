{# A materialized view of Headwater: created and built once, then refreshed from what has changed. dbt's own
   materialization decides which of the statements below is to run. #}

{% macro headwater__get_create_materialized_view_as_sql(relation, sql) -%}
  {{ headwater__create_view_statement('create', relation, sql) }}
{%- endmacro %}

{% macro headwater__get_replace_materialized_view_sql(relation, sql) -%}
  {{ headwater__create_view_statement('create or replace', relation, sql) }}
{%- endmacro %}

{% macro headwater__create_view_statement(verb, relation, sql) -%}
  {%- set options = {'headwater.policy': config.get('policy', 'auto'), 'headwater.shards': config.get('shards', 1)} -%}
  {{ verb }} materialized view {{ relation.render() }}{{ headwater__comment(relation) }}
  tblproperties ({% for key, value in options.items() %}'{{ key }}' = '{{ value }}'{{ ', ' if not loop.last }}{% endfor %})
  as {{ headwater__under_contract(sql) }}
{%- endmacro %}

{% macro headwater__refresh_materialized_view(relation) -%}
  refresh materialized view {{ relation.render() }}
{%- endmacro %}

{% macro headwater__get_materialized_view_configuration_changes(existing_relation, new_config) -%}
  {% do return(adapter.view_difference(existing_relation, headwater__create_view_statement('create', existing_relation, sql))) %}
{%- endmacro %}

{% macro headwater__get_alter_materialized_view_as_sql(
    relation, configuration_changes, sql, existing_relation, backup_relation, intermediate_relation
) -%}
  {{ get_replace_materialized_view_sql(relation, sql) }}
{%- endmacro %}

{# With --full-refresh, or in the place of something else. #}
{% macro headwater__get_replace_sql(existing_relation, target_relation, sql) -%}
  {%- if existing_relation.is_materialized_view and target_relation.is_materialized_view -%}
    {%- if adapter.view_difference(existing_relation, headwater__create_view_statement('create', existing_relation, sql)) is none -%}
      refresh materialized view {{ target_relation.render() }} full
    {%- else -%}
      {{ get_replace_materialized_view_sql(target_relation, sql) }}
    {%- endif -%}
  {%- else -%}
    {{ get_drop_sql(existing_relation) }};
    {{ get_create_sql(target_relation, sql) }}
  {%- endif -%}
{%- endmacro %}

{# A lake has no views without rows, so these keep theirs: they are as new as the last run. #}
{% materialization view, adapter='headwater' -%}
  {{ return(materialization_materialized_view_default()) }}
{%- endmaterialization %}
