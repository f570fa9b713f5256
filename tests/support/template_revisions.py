"""Chat templates that behave as the published revisions of GLM's do, and as the derived ones that know a switch.

Written for these tests. A revision is a few variables before one body: whether old reasoning is kept by default,
whether null content prints `None`, whether media become markers, and whether `enable_thinking` is read.
"""

_BODY = """\
{%- set drops = clear_thinking if clear_thinking is defined else not keeps_reasoning %}
{%- set thinks = enable_thinking if reads_switch and enable_thinking is defined else true %}
{%- macro show(content) %}
{%- if content is string %}{{ content }}
{%- elif content is none or content is not defined %}{{ 'None' if prints_none else '' }}
{%- else %}{% for part in content %}
{%- if part.type == 'text' %}{{ part.text }}
{%- elif has_media and part.type == 'image' %}{{ '<|begin_of_image|><|image|><|end_of_image|>' }}
{%- else %}{{ '<reminder>There is a medium here that you cannot see.</reminder>' }}{% endif %}
{%- endfor %}{% endif %}{% endmacro %}
[gMASK]<sop>
{%- if thinks %}{{ '<|system|>Reasoning Effort: ' }}
{%- if reasoning_effort in ('low', 'high') %}{{ reasoning_effort | capitalize }}{% else %}{{ 'Max' }}{% endif %}
{%- endif %}
{%- if tools %}{{ '<|system|>\\n# Tools\\n<tools>\\n' }}
{%- for tool in tools %}{% set f = tool.function if 'function' in tool else tool %}
{%- if not f.defer_loading %}{{ '{' }}{% set comma = namespace(text='') %}
{%- for key, value in f.items() if key not in ('strict', 'defer_loading') %}
{{- comma.text }}{{ key | tojson }}{{ ': ' }}{{ value | tojson(ensure_ascii=False) }}{% set comma.text = ', ' %}
{%- endfor %}{{ '}\\n' }}{% endif %}{% endfor %}
{{- '</tools>\\nCall one so: <tool_call>name<arg_key>key</arg_key><arg_value>value</arg_value></tool_call>' }}
{%- endif %}
{%- set newest = namespace(user=-1) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set newest.user = loop.index0 %}{% endif %}{% endfor %}
{%- for m in messages %}
{%- if m.role == 'user' %}{{ '<|user|>' }}{{ show(m.content) }}
{%- elif m.role == 'system' %}{{ '<|system|>' }}{{ show(m.content) }}
{%- elif m.role == 'assistant' %}
{%- set block = namespace(thought='', text=show(m.content)) %}
{%- if m.reasoning_content is string %}{% set block.thought = m.reasoning_content %}
{%- elif '</think>' in block.text %}
{%- set block.thought = block.text.split('</think>')[0].split('<think>')[-1].strip() %}
{%- set block.text = block.text.split('</think>')[-1] %}{% endif %}
{{- '<|assistant|><think>' }}
{%- if block.thought and (not drops or loop.index0 > newest.user) %}{{ block.thought.strip() }}{% endif %}
{{- '</think>' }}{{ block.text.strip() }}
{%- for call in m.tool_calls or [] %}{{ '<tool_call>' + call.function.name }}
{%- for key, value in call.function.arguments.items() %}
{{- '<arg_key>' + key + '</arg_key><arg_value>' }}
{{- value if value is string else value | tojson(ensure_ascii=False) }}{{ '</arg_value>' }}{% endfor %}
{{- '</tool_call>' }}{% endfor %}
{%- elif m.role == 'tool' %}
{%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{ '<|observation|>' }}{% endif %}
{{- '<tool_response>' }}{{ show(m.content) }}{{ '</tool_response>' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|assistant|><think>' if thinks else '<|assistant|><think></think>' }}{% endif %}
"""


def _revision(*, keeps: bool, prints_none: bool, media: bool, switch: bool = False) -> str:
    flags = {"keeps_reasoning": keeps, "prints_none": prints_none, "has_media": media, "reads_switch": switch}
    return "".join(f"{{%- set {name} = {str(value).lower()} %}}" for name, value in flags.items()) + _BODY


REVISIONS = {
    "of August 26": _revision(keeps=False, prints_none=True, media=False),
    "of August 27": _revision(keeps=True, prints_none=True, media=True),
    "of September 4": _revision(keeps=True, prints_none=False, media=True),
    "with a switch": _revision(keeps=True, prints_none=False, media=True, switch=True),
}
