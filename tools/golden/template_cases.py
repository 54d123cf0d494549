"""Chat templates written for these tests, which together have every construct that published ones are made of, and
conversations to render them with. Used by template.py."""

TEMPLATES = {}


def _add(name, text):
    TEMPLATES[name] = text


# ---- turns ----
_add("marks around turns", r"""{% for m in messages %}{{ '<|' + m['role'] + '|>' + m['content'] + '<|end|>\n' }}
{% endfor %}
{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}""")
_add("data instead of strings", """{% for m in messages %}
<{{ m.role }}>
{{ m.content }}
</{{ m.role }}>
{% endfor %}
{% if add_generation_prompt is defined and add_generation_prompt %}
<assistant>
{% endif %}
""")
_add("stripped on all sides", """
{%- for m in messages -%}
    {{- bos_token if loop.first -}}
    {{- m.role | upper -}} : {{- m.content | trim -}}
    {%- if not loop.last -%}   {{- ' / ' -}}   {%- endif -%}
{%- endfor -%}
   {{- eos_token }}  """)
_add("kept white space", """a {%+ if messages %} b {%+ endif +%}
  {%+ set x = 1 %}
c {#+ kept +#}
  {# gone #}
	{% if x %}	tab
{% endif %}	end
  {{ x }}  {{- x -}}  .
""")
_add("set in branches", r"""{% if messages[0].role == 'system' %}{% set rules = messages[0].content %}
{% set turns = messages[1:] %}
{% else %}{% set turns = messages %}{% endif %}
{{ rules is defined }} {{ turns | length }}
{% if tools %}{% set x = 'set' %}{% endif %}{{ x }}
{% if not tools is defined %}{% set tools = none %}{% endif %}{{ tools is none }}
{% if not missing %}{% set date_string = date_string | default('never') %}{% endif %}{{ date_string }}
{% for t in turns %}{% set seen = t.role %}{% if loop.first %}{% set first = t.role %}{% endif %}{{ first }}
{{ seen }},{% endfor %}{{ first }}{{ seen }}""")
_add("read before it is set", r"""{% for m in messages %}{{ x }}{{ later }}{% endfor %}{% set later = 1 %}{{ later }}
{% set x = x %}{{ x is none }}
{% for m in messages %}{% set later = later + 1 %}{{ later }}{% endfor %}{{ later }}
{% macro show() %}{{ later }}{{ after }}{% endmacro %}{% set after = 'A' %}{{ show() }}""")
_add("roles must alternate", r"""{% for m in messages %}{% if (m.role == 'user') != (loop.index0 is even) %}
{{ raise_exception('not alternating: ' ~ m.role) }}{% endif %}{{ m.content }};{% endfor %}""")
_add("names of roles", r"""{% set names = {'user': 'Human', 'assistant': 'Model', 'tool': 'Tool'} %}
{% for m in messages %}{{ names[m.role] or names.get(m.role, m.role | capitalize) }}: {{ m['content'] or '' }}
{% endfor %}{{ names | length }}{{ 'user' in names }}{{ names.items() | list }}""")
_add("last user's turn", r"""{% set ns = namespace(last=-1, count=0) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% set ns.count = ns.count + 1 %}
{% endif %}{% endfor %}
{%- for m in messages %}{{ '>' if loop.index0 == ns.last else '-' }}{{ m.role }}{% endfor %} {{ ns.count }}
{{ ns.none }}""")
_add("neighbours", r"""{% for m in messages %}
{% if loop.previtem is undefined or loop.previtem.role != m.role %}[{{ m.role }}{% endif %}
{{- ' ' ~ loop.index ~ '/' ~ loop.length ~ ' ' ~ loop.revindex ~ loop.revindex0 ~ loop.depth ~ loop.depth0 }}
{%- if loop.nextitem is undefined or loop.nextitem.role != m.role %}]{% endif %}{% endfor %}""")
_add("backwards", r"""{% for m in messages[::-1] %}{{ m.role[0] }}{% endfor %} {{ messages[-1].role }}
{{ messages[-2:] | length }} {{ messages[:-1] | map(attribute='role') | join('>') }}
{% for m in messages | reverse %}{{ loop.index }}{{ m.role }}{% endfor %} {{ (messages | last).role }}
{{ messages[0].role[::-1] }} {{ messages[1:1] }}""")
_add("inner loops", r"""{% for m in messages %}{% set outer = loop %}{% for c in m.role %}{{ outer.index }}
{{ loop.index }}{{ c }}{% endfor %}{{ loop.index }};{% endfor %}""")
_add("chosen messages", r"""{% for m in messages if m.role in ['user', 'assistant'] and m.content is string %}
{{ loop.index }}{{ loop.last }}{{ m.content | length }} {% else %}nobody{% endfor %}
{% set ns = namespace(stop=false) %}{% for m in messages if not ns.stop %}{{ m.role }}
{% set ns.stop = m.role == 'user' %}{% endfor %}
{{ messages | selectattr('role', 'equalto', 'user') | list | length }}
{{ messages | rejectattr('content', 'string') | map(attribute='role') | list }}
{{ messages | selectattr('tool_calls') | list | length }}
{{ messages | selectattr('tool_calls', 'defined') | map(attribute='tool_calls.0.function.name') | join }}""")
_add("break and continue", r"""{% for m in messages %}{% if m.role == 'system' %}{% continue %}{% endif %}{{ m.role }}
{% if loop.index > 2 %}{% break %}{% endif %}{% else %}through{% endfor %}
{% for i in [1] %}{% continue %}{% else %}else{% endfor %}{% for i in [1] %}{{ i }}{% else %}else{% endfor %}""")

# ---- contents ----
_add("parts of content", r"""{% for m in messages %}{% if m.content is string %}{{ m.content }}
{% elif m.content is none %}(none){% elif m.content is mapping %}{{ m.content | tojson }}
{%- elif m.content is iterable %}{% for part in m.content %}{% if part.type == 'text' %}{{ part.text | trim }}
{% elif part['type'] in ('image', 'image_url') %}<image>{% endif %}{% endfor %}
{%- else %}{{ raise_exception('content') }}{% endif %}|{% endfor %}""")
_add("thoughts", r"""{% for m in messages if m.content is string %}{% set text = m.content %}{% set thought = '' %}
{%- if m.reasoning_content is string %}{% set thought = m.reasoning_content %}
{%- elif '</think>' in text %}{% set thought = text.split('</think>')[0].split('<think>')[-1].strip('\n') %}
{% set text = text.split('</think>')[-1].lstrip('\n') %}{% endif %}
{{- '(' ~ thought ~ ')' if thought }}{{ text.rstrip() }}
{% endfor %}{% if enable_thinking is defined and enable_thinking is false %}<think></think>{% endif %}""")
_add("cut and joined", r"""{% set t = messages[0].content | string %}
{{ t[:3] }}|{{ t[-3:] }}|{{ t[1:-1:2] }}|{{ t[5] }}|{{ t[99] }}|{{ t[::-1] }}
{{ t.split() }}{{ t.split(' ') | length }}{{ t.split('a', 1) }}{{ t.rsplit(None, 1) }}{{ t.splitlines() }}
{{ t.partition(' ')[2] }}
{{ t.startswith('hi') }}{{ t.endswith(('i', '\n')) }}{{ t.find('a') }}{{ t.count('e') }}{{ t | replace('e', '3') }}
{{ t.replace(' ', '_', 1) }}{{ t.removeprefix('h') }}
{{ '\u00dfa b' | capitalize }}{{ '\u00dfa b' | title }}{{ '\u00dfa b'.title() }}
{{ t.strip().title() }}|{{ t | title }}|{{ t.upper() }}|{{ t.lower() }}|{{ t | capitalize }}|{{ t.isdigit() }}
{{ t.isupper() }}{{ t.isspace() }}{{ t.isalpha() }}""")
_add("lines", r"""{% set t = messages[-1].content | string %}{{ t | indent }}
{{ t | indent(2, true) }}
{{ t | indent('> ', blank=true) }}
{{ '-' * 5 }}{{ t | wordcount }} {{ t | trim | length }} {{ t.splitlines(true) | map('trim') | join('/') }}""")
_add("captured blocks", r"""{% set head %}{% for m in messages %}{{ m.role }} {% endfor %}{% endset %}
{% set loud | trim | upper %} {{ head }} {% endset %}[{{ head }}][{{ loud }}]
{% filter upper %}{{ messages[0].role }}{% set inside = 1 %}{% endfilter %}{{ inside is defined }}
{% with a = 1, b = head | length %}{{ a + b }}{% set c = a %}{% endwith %}{{ c is defined }}{{ a is defined }}""")
_add("generation marks", r"""{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}
{{ eos_token }}{% set g = 1 %}{% endgeneration %}{% else %}{{ m.content }}{% endif %}
{% endfor %}{{ g is defined }}""")
_add("raw text", r"""{% raw %}{{ x }} {% if %} {# c #}
{% endraw %}
 {%- raw -%}  a  {%- endraw -%}  b
  {% raw %}
  c{% endraw %}""")

# ---- tools ----
_add("tools as JSON", r"""{% if tools %}{% for t in tools %}{{ t | tojson }}
{{ t.function | tojson(indent=2) }}
{{ t | tojson(sort_keys=true, separators=(',', ':')) }}
{{ t | tojson(ensure_ascii=true, indent=1) }}{% endfor %}{% else %}no tools{% endif %}""")
_add("calls as JSON", r"""{% for m in messages %}{% for c in m.tool_calls or [] %}
{% set f = c.function if c.function else c %}<call>{"name": "{{ f.name }}", "arguments": 
{%- if f.arguments is string %} {{ f.arguments }}{% else %} {{ f.arguments | tojson }}
{% endif %}}</call>{{ '\n' if not loop.last }}{% endfor %}
{%- if m.role == 'tool' %}<result>{{ m.content if m.content is string else m.content | tojson }}</result>{% endif %}
{% endfor %}""")
_add("calls in one list", r"""{% for m in messages if 'tool_calls' in m %}[{% for c in m.tool_calls %}
{% set out = c.function | tojson %}
{{ out[:-1] }}, "id": "{{ (c.id ~ '000000000')[:9] }}"}{% if not loop.last %}, {% endif %}{% endfor %}]{% endfor %}
{% for t in tools or [] %}{% for k, v in t.function.items() if k != 'description' %}{{ '"' + k + '": ' }}
{% if v is string %}{{ '"' + v + '"' }}{% else %}{{ v | tojson }}{% endif %}{% if not loop.last %}, {% endif %}
{% endfor %};{% endfor %}""")
_add("arguments as tags", r"""{% for m in messages if m.tool_calls is defined and m.tool_calls is iterable %}
{% for c in m.tool_calls %}{% if c.function.arguments is mapping %}
{% for name, v in c.function.arguments | items %}
<{{ name }}>{% set v = v | tojson | safe if v is mapping or (v is sequence and v is not string) else v | string %}
{{ v }}</{{ name }}>
{% endfor %}{% endif %}{% endfor %}{% endfor %}""")
_add("arguments of their own syntax", r"""{% macro write(v, quoted=True) %}
{%- if v is string %}{{ "'" + v + "'" if quoted else v }}
{%- elif v is boolean %}{{ 'yes' if v else 'no' }}
{%- elif v is mapping %}{ {%- for k, x in v | dictsort %}{{ ',' if not loop.first }}
{{ k }}:{{ write(x, quoted=quoted) }}{% endfor -%} }
{%- elif v is sequence %}[{% for x in v %}{{ write(x, quoted) }}{{ ';' if not loop.last }}{% endfor %}]
{%- elif v is none %}nil{% else %}{{ v }}{% endif %}
{%- endmacro %}
{%- for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ write(c.function.arguments) }}
{{ write(v=c.function.arguments, quoted=false) | length }}{% endfor %}{% endfor %}""")
_add("types of parameters", r"""{% macro type_of(p) -%}
{%- set short = {'string': 'str', 'integer': 'int', 'boolean': 'bool', 'number': 'float'} -%}
{%- if p.type is string and short[p.type] %}{{ short[p.type] }}
{%- elif p.type == 'array' %}list[{{ type_of(p['items']) }}]
{%- elif p.type == 'object' %}{{ '{' }}{% for k, v in p.properties.items() %}{{ k }}
{{ '?' if k not in (p.required or []) }}: {{ type_of(v) }}{{ ', ' if not loop.last }}{% endfor %}{{ '}' }}
{%- elif p.type is iterable and p.type is not string %}{{ p.type | join(' | ') }}
{%- else %}any{% endif -%}
{%- endmacro %}
{%- for t in tools or [] %}def {{ t.function.name }}({{ type_of(t.function.parameters) }})
{%- for k, v in t.function.parameters.properties.items() %}
{% if v.default is defined %} {{ k }}={{ v.default | tojson }}{% endif %}{% if v.enum %} {{ v.enum | join('|') }}
{% endif %}{% endfor %}
{% endfor %}""")
_add("what is left of a schema", r"""{% macro rest(d, known) %}{% if d is mapping %}
{% for k in d if k not in known %}
<{{ k }}>{{ d[k] | string if d[k] is not mapping else d[k] | tojson }}</{{ k }}>{% endfor %}{% endif %}{% endmacro %}
{%- for t in tools or [] %}{{ rest(t.function, ['name', 'parameters']) }}
{{ rest(t.function.parameters, ['properties']) }}{{ rest(none, []) }}{% endfor %}""")
_add("tools of the first user", r"""{% set ns = namespace(done=false) %}{% for m in messages %}
{% if m.role == 'user' and not ns.done and tools %}{% set ns.done = true %}
{{ tools | map(attribute='function') | map(attribute='name') | join(', ') }}: {% endif %}{{ m.content }}
{% endfor %}{% if tools is not none and tools is defined and not ns.done %}
{{ raise_exception('no user for ' ~ tools | length ~ ' tools') }}{% endif %}""")
_add("results", r"""{% for m in messages %}{% if m.role == 'tool' %}
{% if loop.index0 == 0 or messages[loop.index0 - 1].role != 'tool' %}<results>{% endif %}
{{ m.name or m.tool_call_id }}={{ m.content }}
{%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}</results>{% endif %}{% endif %}{% endfor %}""")
_add("documents", r"""{% for d in documents or [] %}{% for k, v in d.items() %}{{ k | title }}: {{ v }}
{% endfor %}{{ loop.cycle('a', 'b') }}{{ loop.changed(d.title) }}{{ d.keys() | list }}{{ d.values() | join(',') }}
{{ d.get('nothing') }}{% endfor %}""")

# ---- expressions ----
_add("numbers", r"""{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 2 ** 8 }} {{ 2 ** -1 }} {{ 1 / 4 }} {{ 10 / 5 }}
{{ 1e3 }} {{ 1.5e-7 }} {{ 1e16 }} {{ 123456789.0 * 10 }} {{ -0.0 }} {{ 0.1 + 0.2 }} {{ 3 * 2.5 }} {{ 7.5 // 2 }}
{{ -7.5 % 2 }}
{{ 1_000 }} {{ 0x1f }} {{ 0b101 }} {{ 0o17 }} {{ '12' | int }} {{ '1.9' | int }} {{ 'z' | int(5) }}
{{ 'ff' | int(base=16) }} {{ '1e2' | float }} {{ 3.7 | int }} {{ 2.5 | round }} {{ 2.675 | round(2) }}
{{ 2.1 | round(0, 'ceil') }} {{ -3 | abs }} {{ [1, 2.5] | sum }}
{{ 5 is odd }} {{ 6 is divisibleby 3 }} {{ 1 is number }} {{ 1.0 is float }} {{ true is integer }}
{{ 1 == 1.0 == true }} {{ 3 > 2 > 1 }} {{ 3 > 2 > 2 }} {{ 2 in [1, 2.0] }} {{ 1 is sameas true }}""")
_add("text with values", r"""{{ '%s is %d years, %.2f m, %05d, %-4s|, %x, %%' % ('Zo\u00eb', 7, 1.234, 42, 'ab', 255) }}
{{ '%s' | format(messages[0].role) }} {{ '{} {1}'.format('a') if false else '{0} {name} {{}}'.format('a', name='b') }}
{{ 'a' 'b' "c" }} {{ "q\"'\\\t\x41\u00e9\101" }} {{ 'a' ~ 1 ~ none ~ true ~ 1.0 }} {{ 'ab' * 3 }} {{ 'x' in 'xyz' }}
{{ 'a' < 'b' }} {{ 'it''s' }} {{ ['a', 'it\'s', '"', '\n\x7f\u00a0', none, true, 1.0, (1,), (), {}, {'k': [1]}] }}""")
_add("lists", r"""{{ [3, 1, 2] | sort }} {{ ['b', 'A', 'c'] | sort }} {{ ['b', 'A'] | sort(case_sensitive=true) }}
{{ [1, 2, 3] | sort(reverse=true) }} {{ [1, 1, 2] | unique | list }} {{ [[1, 2], [3]] | map('length') | list }}
{{ [1, 2, 3, 4, 5] | batch(2, 0) | list }}
{{ [4, 2] | min }} {{ ['a', 'B'] | max }} {{ [] | first is undefined }} {{ [1] + [2] }} {{ (1, 2) + (3,) }}
{{ [0] * 3 }} {{ range(5) | list }} {{ range(1, 10, 4) | list }} {{ range(3, 0, -1) | list }}
{{ [1, 2][5] is defined }} {{ [1, 2, 3].index(2) }} {{ [1, 2, 1].count(1) }}
{{ {'b': 1, 'a': 2} | dictsort }} {{ {'b': 1, 'a': 2} | dictsort(by='value', reverse=true) }} {{ dict(a=1, b=2) }}
{{ dict([('x', 1)]) | tojson }} {{ {'a': 1}.get('b', 'c') }} {{ ['a', 'b'] | map('upper') | join('-') }}
{{ [1, none, 'a', 0] | select | list }} {{ [1, 2, 3] | reject('odd') | list }}
{{ [{'a': 1}, {}] | map(attribute='a', default='d') | list }} {{ ['x', 'y'] | select('in', ['y']) | list }}
{% set a, b = [1, 2] %}{{ b }}{{ a }}{% for k, (v, w) in [('k', (1, 2))] %}{{ k }}{{ v }}{{ w }}{% endfor %}
{% for x in 'ab' %}{{ x }}{% endfor %}{% for k in {'p': 1, 'q': 2} %}{{ k }}{% endfor %}""")
_add("logic", r"""{{ none or 'a' }} {{ '' and 'b' }} {{ not '' }} {{ not [] and true }} {{ 1 if 0 }}
{{ 1 if 0 else 2 if 0 else 3 }} {{ x is defined }} {{ y is undefined }} {{ y }} {{ y | default('d') }}
{{ '' | default('e', true) }} {{ '' | d('f') }} {{ none is none }} {{ none == none }} {{ y == z }} {{ y | length }}
{{ y | list }} {{ y ~ 'a' }} {{ y | upper }}
{{ 'a' is string and 'a' is not mapping }} {{ [] is sequence }} {{ {} is sequence }} {{ 'A' is upper }}
{{ 1 is eq 1 }} {{ 1 is in [1] }} {{ 'b' not in 'abc' }} {{ not 1 in [2] }} {{ (true, True, none, None, false) }}
{{ messages is iterable }} {{ range is callable }} {{ 3 is lessthan 4 }} {{ 'x' is equalto 'x' }}""")
_add("branches with what is not there", r"""{% for m in messages %}{% set a = m.content %}
{% if a is mapping %}{% set a = a | from_json %}{% elif a is mapping and a is beautiful %}{{ a }}
{% else %}{{ a }}{{ a | from_json(1, b=2) if a is mapping else 'as it is' }}{% endif %}{% endfor %}
{{ (x is beautiful) if x is mapping }}{{ (x | from_json) if x is number }}""")
_add("keys that are methods", r"""{{ messages[0].items is callable }} {{ messages[0]['items'] is callable }}
{{ messages[0].keys() | list }} {{ messages[0].nothing is defined }} {{ messages[0]['role'] }}
{{ messages[0].get('role') }} {{ 'role'.upper() }} {{ messages[0].__class__ }} {{ messages.append is defined }}
{% for k, v in messages[0].items() %}{{ k }}{% endfor %} {{ x.a }} {{ x[1].a }} {{ messages[0].role.nothing }}
{{ none.nothing }} {{ 5 .real is defined if false }}""".replace(" {{ 5 .real is defined if false }}", ""))
_add("macros", r"""{% macro tag(name, body='', close=true) %}<{{ name }}>{{ body }}
{% if close %}</{{ name }}>{% endif %}{% endmacro %}{{ tag('a') }}{{ tag('b', 1) }}
{{ tag(body='x', name='c', close=false) }}{{ tag() }}
{% macro count(n) %}{{ n }}{% if n > 0 %}{{ count(n - 1) }}{% endif %}{% endmacro %}{{ count(5) }}
{{ count(2) | int + 1 }}{{ tag(count(1) | trim, tag('q')) | length }}
{% macro defaults(a, b=a, c=[1]) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ defaults(1) }}{{ defaults(1, c=2) }}""")
_add("call blocks", r"""{% macro box(title) %}[{{ title }}: {{ caller() }}]{% endmacro %}
{% call box('a') %}in {{ messages[0].role }}{% endcall %}
{% macro each(items) %}{% for i in items %}{{ caller(i, loop.index) }};{% endfor %}{% endmacro %}
{% call(x, n) each([3, 4]) %}{{ n }}={{ x }}{% if x == 4 %}!{% endif %}{% endcall %}
{% call(x='none') box('default') %}{{ x }}{% endcall %}
{% macro maybe() %}{{ caller() if caller is defined else 'alone' }}{% endmacro %}
{{ maybe() }}{% call maybe() %}called{% endcall %}
{% macro outer() %}({% call box('deep') %}{{ caller is defined }}{% set y = 1 %}{{ y }}{% endcall %}){% endmacro %}
{{ outer() }}{% set ns = namespace(n=0) %}
{% call(v, n) each([1, 2]) %}{% set ns.n = ns.n + v %}{% endcall %}{{ ns.n }}""")
_add("arguments of macros", r"""{% macro m(a, b='x') %}{{ a }}{{ b }}{{ varargs }}{{ kwargs }}{% endmacro %}
{{ m(1) }} {{ m(1, 2, 3, 4) }} {{ m(1, z=4, b=2) }} {{ m(z=1, a=2) }} {{ m(1, 2, a=3) }}
{% macro n() %}{% for v in varargs %}{{ v }}{% endfor %}{{ kwargs.q | default('no q') }}{% endmacro %}
{{ n('a', 'b') }}{{ n(q=1) }}""")
_add("a macro that has no use for a block", r"""{% macro m() %}x{% endmacro %}{% call m() %}y{% endcall %}""")
_add("recursive loops", r"""{% for x in [[1, [2, [3]]], 4, [5]] recursive %}
{%- if x is iterable %}({{ loop(x) }}){% else %}{{ loop.depth }}.{{ loop.depth0 }}:{{ x }} {% endif %}
{%- endfor %}
{% set tree = [{'n': 'a', 'c': [{'n': 'b', 'c': []}, {'n': 'd'}]}, {'n': 'e'}] %}
{% for t in tree if t.n != 'd' recursive %}{{ loop.index }}{{ t.n }}{% if t.c is defined %}
<{{ loop(t.c) | trim }}>{% endif %}{% else %}empty{% endfor %}
{% for t in tree recursive %}{% set outer = loop %}{% for q in [1] %}{{ t.n }}{{ outer(t.c or []) }}{% endfor %}
{% endfor %}""")
_add("a loop that is not recursive", r"""{% for x in [[1]] %}{{ loop(x) }}{% endfor %}""")
_add("groups", r"""{% for g in messages | groupby('role') %}{{ g.grouper }}:{{ g.list | length }}{{ g[1] | length }} 
{% endfor %}{% for role, list in messages | groupby('role') %}{{ role }}{{ list | map(attribute='role') | list }}
{% endfor %}{{ [{'a': 'b'}, {'a': 'B'}, {'a': 'a'}, {}] | groupby('a', default='z') }}
{{ [{'a': 'b'}, {'a': 'B'}, {'a': 'a'}] | groupby('a', case_sensitive=true) | map('first') | list }}
{{ [[1, 2], [0, 1], [1, 3]] | groupby(0) | list }} {{ [] | groupby('a') }}
{{ [{'a': {'b': 2}}, {'a': {'b': 1}}] | groupby('a.b') | map(attribute='grouper') | list }}""")
_add("groups of what has no order", r"""{{ [{'a': 1}, {'a': 'x'}] | groupby('a') }}""")
_add("batches and slices", r"""{% set l = range(7) | list %}{{ l | batch(3) | list }}{{ l | batch(3, 'x') | list }}
{{ l | slice(3) | list }}{{ l | slice(3, 'x') | list }}{{ l | slice(7, 0) | list }}{{ l | slice(9) | list }}
{{ 'abcd' | batch(2) | list }}{{ 'abcde' | slice(2) | map('join') | list }}{{ [] | slice(2, 1) | list }}
{{ [] | batch(2, 1) | list }}{% for row in l | batch(4, ' ') %}{{ row | join('-') }}/{% endfor %}""")
_add("widths", r"""{% set t = messages[0].content | string %}{% set u = messages[-1].content | string %}
{{ 'a' | center(5) }}|{{ 'ab' | center(5) }}|{{ t | center(9) }}|{{ 12 | center(4) }}|{{ 'abc' | center(2) }}|
{{ 'a'.center(4, '*') }}{{ 'a'.ljust(3, '.') }}{{ 'a'.rjust(3) }}{{ '-7'.zfill(5) }}{{ '+7'.zfill(2) }}
{{ 'a'.zfill(3) }}{{ ''.zfill(2) }}{{ t.swapcase() }}{{ '\u00df\u00e9 A'.swapcase() }}
{{ 'hello world and more' | truncate(9) }}|{{ 'hello world and more' | truncate(9, true) }}|
{{ 'hello world' | truncate(8) }}|{{ 'hello world' | truncate(8, leeway=0) }}|{{ t | truncate(5, end='!', leeway=0) }}|
{{ 'helloworld!' | truncate(5, leeway=0) }}|{{ u | truncate(10, true, '>', 0) }}|{{ nope | truncate }}|
{{ ('ab ' * 200) | truncate | length }}""")
_add("wrapped lines", r"""{% set t = messages[-1].content | string %}{{ t | wordwrap(6) }}
{{ 'a b c d e f' | wordwrap(4) }}|{{ 'long-winded co-operation--of 12-34 a-b x' | wordwrap(8) }}|
{{ 'abcdefghijkl mn' | wordwrap(5) }}|{{ 'abcdefghijkl mn' | wordwrap(5, false) }}|{{ 'a  b   c' | wordwrap(2) }}|
{{ 'one two three' | wordwrap(7, wrapstring='<br>') }}|{{ 'x-y-zz ab-cd-efgh' | wordwrap(4, break_on_hyphens=false) }}|
{{ '  lead and trail  ' | wordwrap(6) }}|{{ 'p1\n\n  p2 word\r\nlast' | wordwrap(5) }}|{{ '' | wordwrap(3) }}|
{{ 'wait--what! "quoted"--yes e.g.--no ---- -x --y' | wordwrap(7) }}|{{ 'ab abcdefgh-ij' | wordwrap(3) }}|
{{ '\u00e9t\u00e9-\u00e9t\u00e9 \u4e2d\u6587\u3000x' | wordwrap(3) }}|{{ '----abcdef' | wordwrap(3) }}|
{{ ('word ' * 30) | wordwrap }}""")
_add("attributes", r"""{{ {'a': 1, 'b': none, 'c': '<"&>', 'd': nope} | xmlattr }}|{{ {} | xmlattr }}|
{{ {'a': 1} | xmlattr(false) }}|{{ messages[0] | attr('role') }}|{{ messages[0] | attr('items') is callable }}|
{{ '<a>' | forceescape }}{{ '<a>' | e | forceescape }}|{{ 'a b/\u00e9?&=~' | urlencode }}|
{{ {'a b': 1, 'c/d': 'x y'} | urlencode }}|{{ [('a', 'b&c')] | urlencode }}|{{ 12 | urlencode }}|
{{ '<b>x</b>  <!-- <i> --> y &amp; z &lt;' | striptags }}|{{ 'a < b' | striptags }}|
{{ '<p>a</p> <p>b' | striptags }}""")
_add("an attribute with a space", r"""{{ {'a b': 1} | xmlattr }}""")
_add("pretty values", r"""{{ {'b': [1, 'x', none, true], 'a': (1,)} | pprint }}
{{ messages | pprint if messages[0].content is string and messages[0].content | length < 20 }}
{{ range(40) | list | pprint }}
{{ {'k': range(30) | list, 'a': {'deep': [['x' * 30, 'y' * 30], ['z' * 30]]}} | pprint }}
{{ 'it\'s' | pprint }}{{ 1.5 | pprint }}{{ [] | pprint }}{{ (('a' * 70,), 'b' * 20) | pprint }}""")
_add("cyclers and joiners", r"""{% set c = cycler('a', 'b', 3) %}{{ c.next() }}{{ c.next() }}{{ c.current }}
{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.current }}{{ c is callable }}{{ c is iterable }}{{ c is defined }}
{% set j = joiner() %}{% set k = joiner('|') %}{% for m in messages %}{{ j() }}{{ k() }}{{ m.role }}{{ c.next() }}
{% endfor %}{{ j is callable }}{{ lipsum is defined }}""")
_add("a cycler of nothing", r"""{{ cycler() }}""")
_add("tests of names", r"""{{ 'upper' is filter }}{{ 'nope' is filter }}{{ 'odd' is test }}{{ 'nope' is test }}
{{ 1 is filter }}{{ 'xmlattr' is filter }}{{ 'filter' is test }}{{ ['upper', 'x'] | select('filter') | list }}""")
_add("no escaping", r"""{% autoescape false %}<{{ '<' }}{% set a = 1 %}{% endautoescape %}{{ a is defined }}""")
_add("dates", r"""{{ strftime_now('%d %b %Y') }}
{{ strftime_now('%A, %B %-d, %Y %H:%M:%S %p %j %y %I') }}|{{ strftime_now('%Y-%m-%d') is string }}
{% if strftime_now is defined %}{{ strftime_now('%F %T %e') }}{% endif %}{{ date_string | default('none') }}""")
_add("escaped", r"""{{ '<a href="x">&\'' | escape }} {{ '<b>' | safe }} {{ ('<b>' | safe) ~ '<i>' }}
{{ ('<b>' | safe) + '<i>' }} {{ messages[0].content | string | e }} {{ {'a': '<>&'} | tojson }} {{ '<' | e | e }}
{{ '<b>' | safe | upper | length }}""")
_add("all of it", """{{ messages }}
{{ messages | tojson(indent=4) }}
{{ x }} {{ x | tojson }} {{ tools }} {{ [messages[0].content, x] }}""")

S, U, A, T = "system", "user", "assistant", "tool"
CALL = {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": {
    "city": "Z\u00fcrich", "days": 3, "f": 1.0, "deep": {"b": [None, True], "A": 1e-7}}}}
CALL_AS_TEXT = {"id": "abcdefghi", "type": "function", "function": {"name": "now", "arguments": "{\"a\": 1}"}}
TOOLS = [
    {"type": "function", "function": {"name": "weather", "description": "The weather.\nIn \"a city\".", "parameters": {
        "type": "object", "required": ["city"], "properties": {
            "city": {"type": "string", "description": "Where"},
            "unit": {"type": "string", "enum": ["c", "f"], "default": "c"}, "days": {"type": ["integer", "null"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "area": {"type": "object", "properties": {"lat": {"type": "number", "default": 0.5}}}}}}},
    {"type": "function", "function": {"name": "now", "description": "", "parameters": {
        "type": "object", "properties": {}}}}]


def _turns(*turns):
    return [{"role": role, "content": content} for role, content in turns]


CONVERSATIONS = [
    {"messages": _turns((U, "hi")), "add_generation_prompt": True},
    {"messages": _turns((S, " Be brief. \n"), (U, "  Why?\n"), (A, "Because.\n\n"), (U, "")),
     "add_generation_prompt": True},
    {"messages": _turns((U, "\x01Caf\u00e9 \U0001f600 \u4e2d\u6587\u3000<|end|>"),
                        (A, "<think>\nhm\n</think>\n\nYes {{ x }}"))},
    {"messages": _turns((U, "weather?")) + [
        {"role": A, "content": None, "tool_calls": [CALL]},
        {"role": T, "content": "{\"t\": 21.5}", "name": "weather", "tool_call_id": "call_1"}],
     "tools": TOOLS, "add_generation_prompt": True},
    {"messages": _turns((S, "Use tools."), (U, "two")) + [
        {"role": A, "content": "ok", "tool_calls": [CALL, CALL_AS_TEXT]},
        {"role": T, "content": "1", "tool_call_id": "1"}, {"role": T, "content": {"n": 2}, "tool_call_id": "2"},
        {"role": A, "content": "done", "reasoning_content": "because"}], "tools": TOOLS, "enable_thinking": False},
    {"messages": [{"role": U, "content": [{"type": "image"}, {"type": "text", "text": " look \n"}]}],
     "enable_thinking": True, "x": [1, {"a": 2.5}]},
    {"messages": _turns(("developer", "d\"q'\\\x7f\u200d"), (U, "line\r\nline\n\n  indented\u2028x")), "tools": [],
     "documents": [{"title": "A b-c", "text": "d"}, {"title": "A b-c"}], "x": 1e22, "date_string": "04 Jul 2026"},
    {"messages": _turns((A, "first"), (U, "\u00df\u03a3\u03a3 \u0416\x01 \u0131 don't x-y")), "x": None},
]
