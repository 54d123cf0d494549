#!/usr/bin/env python3
"""What the hot loops of kernels cost on GPUs that need not be there: instructions per weight, key or multiply-add, from
the assembly that a driver made of them. What is predicted from that is in predict.py.

  instructions.py count GPU VENDOR ROWS [COUNTED] < OUTPUT
      OUTPUT: of `peridot devices --pipelines --assembly` as it runs on the GPU; ROWS: the rows of tools/pipelines made
      of it. Writes "KERNEL USE CELL", of what is in COUNTED, which has such lines, the worse
  instructions.py compare OLD NEW REASONS
      tables, and the exceptions of tools/pipelines; writes what has risen

A cell is VECTOR/ALL/SLOTS/LOADSxWAVES: vector instructions and all instructions that a lane issues for a weight
(matvec), for a key and a query head (attention), for a multiply-add (matmul), or for an element of a recurrence's state
and a row (delta); what the vector instructions take of the time of one at full rate; the most loads from memory that a
wave has under way at once in the loop, and the waves that the registers leave room for. An instruction of Intel's that
is narrower than the subgroup counts for its share, but as one of the hardware's width at least, which is that of a
register: twice as many lanes of 16 bits as of 32.
"""
import collections, math, os, re, subprocess, sys

# ---- reading assembly: instructions, and for each loop the indices of what it repeats ----

class Instruction:
    """kind: vector, load, store, shared (memory of the workgroup), scalar (and branches) or wait.  count: times issued.
    size: bytes that a lane loads.  outstanding: how many loads may still be under way once it is issued, if it says.
    writes: for a load whose uses are the waits, its registers.  text: where those are looked for.  pipe, cost: what a
    vector instruction occupies beside the slot in which it is issued, and for how many times as long."""
    def __init__(self, kind, text, count=1, size=0, outstanding=None, writes=None, pipe='', cost=1):
        self.kind, self.text, self.count, self.size = kind, text, count, size
        self.outstanding, self.writes, self.pipe, self.cost = outstanding, writes, pipe, cost

AMD_SIZES = (('x4', 16), ('b128', 16), ('x3', 12), ('b96', 12), ('x2', 8), ('b64', 8), ('dword', 4), ('b32', 4),
             ('byte', 1), ('u8', 1), ('i8', 1), ('short', 2), ('16', 2))

# At a quarter of the rate.
AMD_SLOW = re.compile(r'v_(mul_lo_u32|mul_hi_|mad_u64|mad_i64|mad_co_u64|rcp|rsq|sqrt|exp|log|sin|cos|div_)')

def amd_instruction(op, rest):
    if op.startswith(('buffer_', 'global_', 'flat_', 'scratch_')):
        if 'load' not in op: return Instruction('store', rest)
        return Instruction('load', rest, size=next((n for name, n in AMD_SIZES if name in op), 0))
    if op.startswith('ds_'): return Instruction('shared', rest)
    if op.startswith(('s_wait', 's_delay', 's_nop', 's_clause', 's_barrier')):
        wait = re.match(r'()(\w+)', rest) if op == 's_wait_loadcnt' else re.search(r'(vmcnt)\((\w+)\)', rest)
        return Instruction('wait', rest, outstanding=int(wait[2], 0) if wait else None)
    return Instruction('vector' if op.startswith('v_') else 'scalar', rest, cost=4 if AMD_SLOW.match(op) else 1)

def read_amd(text, lanes, gpu):
    code, labels, loops = [], {}, []
    for line in text.splitlines():
        if found := re.match(r'(BB\d+):', line): labels[found[1]] = len(code)
        elif found := re.match(r'\s+([a-z]\w+)\s*([^;]*)', line):
            target = re.search(r'BB\d+', found[2]) if found[1].startswith(('s_branch', 's_cbranch')) else None
            if target and target[0] in labels: loops.append(set(range(labels[target[0]], len(code) + 1)))
            code.append(amd_instruction(found[1], found[2]))
    return code, loops

INTEL_REGISTER = {'lnl': 64, 'bmg': 64}   # bytes, where they are not 32
INTEL_FLOW = ('while', 'if', 'else', 'endif', 'break', 'cont', 'jmpi', 'halt')

def intel_load(rest, lanes, gpu):
    """A send that reads memory: the bytes of a lane. A block that is loaded for all lanes at once counts as none."""
    if 'transpose' in rest or 'block' in rest: return 0
    if found := re.search(r'byte scattered read, \w+ \d+, (\d+)', rest): return 1 << (int(found[1]) >> 2)
    found = re.search(r'rlen (\d+)', rest) or re.search(r'dst_len = (\d+)', rest)
    part = 2 if 'd16u32' in rest else 4 if 'd8u32' in rest else 1   # comes in 4 bytes a lane
    return int(found[1]) * INTEL_REGISTER.get(gpu, 32) / lanes / part if found else 0

INTEL_TYPES = {'HF': 2, 'BF': 2, 'W': 2, 'UW': 2, 'B': 2, 'UB': 2}   # bytes in which they are computed; others: 4

def intel_width(operands):
    """Bytes that a lane takes of a register. An instruction is issued once for each register that its widest type or
    its destination fills, so 16 halves or words as 8 floats, on all generations (fp16 at twice the rate of fp32). Bytes
    are computed as words, and what only writes every second half takes as long as for floats."""
    widest = max((INTEL_TYPES.get(t, 4) for t in re.findall(r'[>\da-f](U?[QDWB]|[DHB]?F)\b', operands)), default=4)
    stride = re.match(r'[^\s<]+<(\d+)>(U?[WB]|[HB]F)\b', operands)
    return min(4, max(widest, int(stride[1]) * (1 if 'B' == stride[2][-1] else 2))) if stride else widest

def intel_instruction(op, size, rest, lanes, gpu):
    if op.startswith('send'):
        if re.search(r'slm|SLM|Surface = 254', rest): return Instruction('shared', rest)
        if re.search(r'gateway|fence', rest): return Instruction('wait', '')
        if re.search(r'store|write', rest): return Instruction('store', rest)
        first, length = re.match(r'g(\d+)', rest), re.search(r'(?:rlen|dst_len =) (\d+)', rest)
        writes = range(int(first[1]), int(first[1]) + int(length[1])) if first and length else None
        return Instruction('load', rest.split(None, 1)[1], size=intel_load(rest, lanes, gpu), writes=writes)
    if op in ('sync', 'nop', 'wait'): return Instruction('wait', '')
    if op.split('.')[0] in INTEL_FLOW: return Instruction('scalar', '')
    cost = 4 if op.startswith('math') else 2 if re.match(r'\S+>U?Q\b', rest) else 1   # 64 bits take two registers
    size = max(size * intel_width(rest) / 4, INTEL_REGISTER.get(gpu, 32) / 4)
    return Instruction('vector', rest.split(None, 1)[-1], count=size / lanes, cost=cost)

def read_intel(text, lanes, gpu):
    lines, labels, loops, code = [], {}, [], []
    for line in text.splitlines():
        if 'MsgDesc' in line and lines: lines[-1] += ' ' + line.strip()
        else: lines.append(line.strip())
    for line in lines:
        if found := re.match(r'(LABEL\d+):', line): labels[found[1]] = len(code)
        elif found := re.match(r'(?:\([^)]*\)\s*)?([a-z][\w.]*)(?:\s+\w+)?\((\d+)\)\s+(.*)', line):
            target = re.search(r'JIP:\s*(LABEL\d+)', found[3]) if found[1] == 'while' else None
            if target and target[1] in labels: loops.append(set(range(labels[target[1]], len(code) + 1)))
            code.append(intel_instruction(found[1], int(found[2]), found[3], lanes, gpu))
    return code, loops

NVIDIA_FLOW = ('bra', 'bsync', 'bssy', 'bclear', 'break', 'exit', 'warpsync')

def nvidia_instruction(line, op, bits):
    base = op.split('.')[0]
    if base in ('ldg', 'ld') and '.shared' not in op:
        found = re.search(r'\.[busf](\d+)', op)
        return Instruction('load', line, size=int(found[1]) / 8 if found else 4, writes=bits)
    if base in ('st', 'stg') and '.shared' not in op: return Instruction('store', line)
    if base in ('ld', 'st', 'lds', 'sts'): return Instruction('shared', line)
    if base in ('nop', 'bar', 'membar', 'depbar'): return Instruction('wait', line)
    if base in NVIDIA_FLOW or re.match(r'(@!?\w+\s+)?u[rp]\d', line): return Instruction('scalar', line)
    pipe = next((pipe for pipe, names in NVIDIA_PIPES.items() if base in names), 'int')
    return Instruction('vector', line, pipe=pipe)

# Of 128 lanes that an SM issues a clock, a pipe takes one in so many (CUDA C++ Programming Guide, throughput of
# arithmetic instructions). All others are of the pipe of integers.
NVIDIA_PIPES = {'float': ('ffma', 'fmul', 'fadd', 'hfma2', 'hadd2'), 'multiply': ('imad', 'imad64', 'idp4'),
                'convert': ('i2f', 'f2f', 'f2i', 'mufu', 'popc', 'flo', 'brev')}
NVIDIA_RATES = {'pascal': {'float': 1, 'multiply': 1, 'int': 1, 'convert': 4},
                'turing': {'float': 2, 'multiply': 2, 'int': 2, 'convert': 8},
                'ampere': {'float': 1, 'multiply': 2, 'int': 2, 'convert': 8}}

def natural_loops(blocks):
    """blocks: number -> (first, end, successors), numbered in an order in which loops' heads come first."""
    into, loops = collections.defaultdict(set), []
    for number, (_, _, out) in blocks.items():
        for successor in out: into[successor].add(number)
    for number, (_, _, out) in blocks.items():
        for head in (h for h in out if h <= number):
            body, todo = {head, number}, [number]
            while todo:
                block = todo.pop()
                new = into[block] - body if block != head else set()
                body |= new
                todo += new
            loops.append({i for b in body for i in range(blocks[b][0], blocks[b][1])})
    return loops

def read_nvidia(text, lanes, gpu):
    """The waits are on the scoreboards that loads set: wr:3 is set, wt=001000 is waited for."""
    code, blocks, now = [], {}, None
    for line in text.splitlines():
        if found := re.match(r'\s*block(?:\.u)?\s+(\d+)', line):
            now = int(found[1])
            blocks[now] = (len(code), len(code), [])
        elif found := re.match(r'\s*\}\s*->\s*\[([^\]]*)\]', line):
            blocks[now] = (blocks[now][0], len(code), [int(n) for n in re.findall(r'\d+', found[1])])
        elif now is not None and '//' in line:
            body, _, note = line.strip().partition('//')
            sets, waits = re.search(r'wr:(\d)', note), re.search(r'wt=(\d+)', note)
            waits = {5 - i for i, c in enumerate(waits[1]) if c == '1'} if waits else set()
            rest = re.sub(r'^@!?\w+\s+', '', body)
            rest = rest.split('=', 1)[1].strip() if re.match(r'[\w.\s]+=', rest) else rest.strip()
            if rest:
                found = nvidia_instruction(body, rest.split()[0], {int(sets[1])} if sets else None)
                found.text = ' '.join(f'g{n}' for n in waits)
                code.append(found)
    return code, natural_loops(blocks)

QUALCOMM_FLOW = ('br', 'brac', 'brao', 'braa', 'jump', 'end', 'chmask', 'chsh', 'shps', 'shpe', 'getone', 'predt',
                 'predf', 'prede')
QUALCOMM_SLOW = ('rcp', 'rsq', 'log2', 'exp2', 'sin', 'cos', 'sqrt')

def qualcomm_instruction(op, rest, synchronised):
    found = re.match(r'(ld|st|atomic)(\w*)', op)
    outstanding = 0 if synchronised else None
    if found and found[2][:1] == 'g':
        words = re.search(r',\s*(\d+)\s*$', rest)
        bits = re.search(r'\.[ufs](\d+)', op)
        return Instruction('load' if found[1] == 'ld' else 'store', rest, outstanding=outstanding,
                           size=int(words[1]) * int(bits[1]) / 8 if words and bits else 0)
    if found and found[2][:1] == 'l': return Instruction('shared', rest, outstanding=outstanding)
    kind = 'wait' if op.split('.')[0] in ('nop', 'bar', 'fence') else 'scalar' \
        if op.split('.')[0] in QUALCOMM_FLOW or re.match(r'r(4[89]|5[0-5])\.', rest) else 'vector'
    return Instruction(kind, rest, outstanding=outstanding, cost=4 if op in QUALCOMM_SLOW else 1)

def read_qualcomm(text, lanes, gpu):
    """(rpt3) repeats an instruction three times more; (sy) waits for all loads; r48 to r55 are one for all lanes."""
    code, labels, loops = [], {}, []
    for line in text.splitlines():
        if found := re.match(r'\s*(l\d+):', line): labels[found[1]] = len(code)
        elif found := re.match(r'\s*((?:\([^)]*\))*)([a-z][\w.]*)\s*(.*)', line):
            target = re.search(r'#(l\d+)', found[3])
            if target and target[1] in labels: loops.append(set(range(labels[target[1]], len(code) + 1)))
            one = qualcomm_instruction(found[2], found[3], '(sy)' in found[1])
            repeats = re.search(r'\(rpt(\d+)\)', found[1])
            one.count = 1 + int(repeats[1]) if repeats else 1
            code.append(one)
    return code, loops

READERS = {'amd': read_amd, 'intel': read_intel, 'nvidia': read_nvidia, 'qualcomm': read_qualcomm}

# ---- counting ----

def loads_under_way(body):
    """The most at once. The loop is gone through twice, as loads may be for its next iteration."""
    most, open_loads = 0, []
    for one in body + body:
        if one.outstanding is not None: open_loads = open_loads[max(0, len(open_loads) - one.outstanding):]
        read = {int(n) for n in re.findall(r'\bg(\d+)', one.text)} if open_loads else ()
        if read: open_loads = [load for load in open_loads if not read.intersection(load.writes or ())]
        if one.kind == 'load' and one.size: open_loads.append(one)
        most = max(most, len(open_loads))
    return most

class Kernel:
    """An executable's instructions, and those of its loops that have none inside."""
    def __init__(self, vendor, gpu, lanes, waves, spec, text):
        self.code, loops = READERS[vendor](text, lanes, gpu)
        heads = collections.defaultdict(set)   # a loop with two ways back is one
        for loop in loops: heads[min(loop)] |= loop
        self.loops = list(heads.values())
        self.gpu, self.lanes, self.waves, self.spec = gpu, lanes, waves, spec
        self.inner = [l for l in self.loops if not any(other < l for other in self.loops)]

    def total(self, indices, kinds=None):
        return sum(self.code[i].count for i in indices if not kinds or self.code[i].kind in kinds)

    def loaded(self, indices): return sum(self.code[i].size for i in indices)

    def slots(self, parts):
        """Instructions of all pipes are issued one after the other; the pipes work side by side."""
        pipes = collections.Counter()
        for indices, by in parts:
            for one in (self.code[i] for i in indices if self.code[i].kind == 'vector'):
                pipes[''] += by * one.count * one.cost
                if one.pipe: pipes[one.pipe] += by * one.count * NVIDIA_RATES[self.gpu][one.pipe]
        return max(pipes.values())

SUBGROUP_ID, BIAS_ID, EXPERTS_ID = 11, 12, 13   # PD_SUBGROUP_ID ... of shaders/params.h
INTEL_THREADS = {'skl': 7, 'icl': 7, 'tgl': 7, 'adl': 7}   # of an EU, whatever the registers; 8 in others

# What an iteration does, by the constants of a kernel (see the head of its shader).

def read_types():
    """Of shaders/types.def: the bits of a weight on the device, and LOW, the bytes of 32 weights' quants."""
    types = os.path.join(os.path.dirname(__file__), '../shaders/types.def')
    row = '#define ROW(name, NAME, form, writes, smaller, same, file, device, ...) name PD_OF_ROW device;'
    rows = f'#include "{types}"\n{row}\nPD_TYPES(ROW, )'
    done = subprocess.run(['cc', '-E', '-P', '-x', 'c', '-'], input=rows, capture_output=True, text=True, check=True)
    bits, low = {}, {}
    for name, numbers in re.findall(r'(\w+) ([\d, ]+);', done.stdout):
        low[name], high, scale, of_superblock, _, _, blocks_of_scale, _ = map(int, numbers.split(','))
        bits[name] = (low[name] + high + scale / blocks_of_scale + of_superblock / 8) / 4
    return bits, low

BITS, LOW = read_types()

def unit_of(dtype):
    """UNIT of shaders/weights.glsl: the weights of a type that matvec and matmul_coop decode at once."""
    return 512 // LOW[dtype] if LOW[dtype] > 16 else 32

def of_experts(spec): return spec[EXPERTS_ID:EXPERTS_ID + 1] == [1]

def has_bias(spec):
    """A tower's: its loops are those of the pipeline without, and only what is around them differs."""
    return spec[BIAS_ID:BIAS_ID + 1] == [1]

def matvec(kernel, name, dtype):
    """A unit of ROWS rows, WIDTH times. Of loops without a loop inside, the one that loads least, but enough."""
    _, rows, cols, norm = kernel.spec[:4]
    if cols != 1 or has_bias(kernel.spec): return None
    weights = (32 if 'dot' in name else unit_of(dtype)) * rows * kernel.spec[8]
    expected = weights * (BITS[dtype] / 8 + (0 if norm else 4 / rows))
    loaded = {frozenset(l): kernel.loaded(l) for l in kernel.inner}
    enough = [l for l in loaded if loaded[l] > 0.9 * expected and (not norm or kernel.total(l, ('shared',)) >= 4)]
    hot = min(enough, key=loaded.get) if enough else max(loaded, key=loaded.get, default=())
    if not 0.9 < kernel.loaded(hot) / expected < 3:
        raise ValueError(f'the hot loop loads {kernel.loaded(hot):g} bytes, and should about {expected:g}')
    use = 'experts' if of_experts(kernel.spec) else 'gated' if kernel.spec[6] else 'normed' if norm else 'plain'
    return f'{use},{rows}', [(hot, 1 / weights)]

def attention(kernel, name, dtype):
    """The loop over tiles of 32 keys, and in it the loops that load: over keys to be scored, where a subgroup takes
    some at once in a loop over elements, and over values to be added, where each invocation takes its own elements of
    more. Compilers unroll the latter, or not. Loops that load nothing are not counted."""
    workgroup, head_dim, heads, _, _, decode = kernel.spec[:6]
    if not decode: return None
    keys, values, tile_keys = 2 if heads > 4 else 4, 8, 32
    tile = max(kernel.loops, key=lambda l: (kernel.loaded(l), len(l)))
    score, *others = sorted((l for l in kernel.inner if l < tile and kernel.loaded(l)), key=kernel.loaded)
    around = min((l for l in kernel.loops if score < l < tile), key=len, default=score)
    trips = max(1, head_dim / 2 / kernel.lanes) if around != score else 1
    by_subgroup = kernel.lanes / (keys * heads)
    parts = [(tile.difference(*(l for l in kernel.loops if l < tile)), workgroup / (tile_keys * heads)),
             (around - score, by_subgroup), (score, by_subgroup * trips)]
    return f'{head_dim},{heads}', parts + [(l, workgroup / (values * heads)) for l in others[-1:]]

def attention_tile(kernel, name, dtype):
    """The loop over tiles of keys, which has all loops that use shared memory, and in it nests of loops in the order of
    the shader: scores, then values. Compilers may drop a loop of one turn."""
    workgroup, head_dim, heads = kernel.spec[:3]
    half, hot = 'half' in name, set().union(*(l for l in kernel.inner if kernel.total(l, ('shared',))))
    keys, slices, copy_trips = 64 if half else 32, math.ceil(head_dim / 64), 32 * 16 / workgroup
    nests = ([slices, 2, 4], [2, 2, 4] if head_dim > 64 else [1, 4, 4]) if half else ([slices, 16], [32])
    tile = min((l for l in kernel.loops if hot < l), key=len)
    loops = sorted((l for l in kernel.loops if l < tile), key=min)
    parts, seen = [(tile.difference(*loops), workgroup / (32 * keys))], 0
    for top in [l for l in loops if not any(l < m for m in loops)]:
        inside = [l for l in loops if l <= top]
        copies = [l for l in inside if not half and kernel.loaded(l) and not any(m < l for m in inside)]
        depths = [sum(l < m for m in inside) for l in inside]
        nest = nests[min(seen, 1)]
        if top not in copies:
            seen += 1
            if max(depths) + 1 < len(nest): nest = [n for n in nest if n > 1]
            if max(depths) + 1 != len(nest): raise ValueError('the loops of a tile are not nested as in the shader')
        for l, depth in zip(inside, depths):
            trips = math.prod(nest[:depth]) * (copy_trips if l in copies else nest[depth])
            parts.append((l.difference(*(m for m in inside if m < l)), workgroup * trips / (32 * keys)))
    return f'{head_dim},{heads}', parts

def matmul(kernel, name, dtype):
    """A step over columns: what lies in no loop of its own, and loops with their trips: those that load first."""
    if has_bias(kernel.spec): return None
    if 'coop' in name:
        workgroup, _, rows, tokens, step = kernel.spec[:5]
        trips = [rows * step / unit_of(dtype) / workgroup, tokens * step / 8 / workgroup]
        others = step / kernel.spec[9]   # of one over columns, where it is not unrolled
    elif 'dot' in name or 'half' in name:
        workgroup, tokens = kernel.spec[:2]
        rows, step = 64, workgroup / 2
        trips, others = [], step / 32
    else:
        workgroup, tokens = kernel.spec[:2]
        rows, step = 64, 32
        trips, others = [], 8
    outer = max(filter(kernel.loaded, kernel.loops), key=len)
    inside = [l for l in kernel.loops if l < outer]
    if any(a < b for a in inside for b in inside): raise ValueError('there are loops in the loops of a step')
    loading = sorted(filter(kernel.loaded, inside), key=min)
    trips = sorted(trips)[len(trips) - len(loading):] if len(loading) < len(trips) else trips
    each = workgroup / (rows * tokens * step)
    parts = [(l, each * t) for l, t in zip(loading, trips)] + [(l, each * others) for l in inside if l not in loading]
    uses = [f'{rows}x{tokens}'] if 'coop' in name else [*map(str, kernel.spec[:2])]
    uses += ['experts'] if of_experts(kernel.spec) else []
    return ','.join(uses) or '-', [(outer.difference(*inside), each)] + parts

def delta(kernel, name, dtype):
    """Rows of a run, and around them what is computed for the rows of a block at once."""
    workgroup, d_k, parts, keeps, _, mamba, each = kernel.spec[:7]
    if keeps: return None
    row = max(kernel.inner, key=len)
    block = min((l for l in kernel.loops if row < l), key=len)
    elements = d_k / parts * each
    return f'{"mamba" if mamba else "delta"},{d_k}', [(row, 1 / elements),
                                                      (block - row, parts / (workgroup * elements))]

KINDS = {'delta': delta, 'matvec': matvec, 'matvec_dot': matvec, 'attention': attention,
         'attention_tile': attention_tile, 'attention_half': attention_tile, 'matmul': matmul, 'matmul_dot': matmul,
         'matmul_half': matmul, 'matmul_coop': matmul}

def number(x): return f'{x:.3g}' if x < 1000 else f'{x:.0f}'

def cell_of(kernel, parts):
    """A part is the indices of a loop, and what its count is to be multiplied by."""
    vector, everything = (sum(by * kernel.total(l, kinds) for l, by in parts) for kinds in (('vector',), None))
    loads = max(loads_under_way([kernel.code[i] for i in sorted(l)]) for l, _ in parts)
    return '/'.join(map(number, (vector, everything, kernel.slots(parts)))) + f'/{loads}x{kernel.waves}'

def executables(lines):
    """Rows of peridot's table as (kernel, spec, subgroup, assembly)."""
    row, text = None, []
    for line in lines:
        if line.startswith(' '): text.append(line[4:].rstrip('\n'))
        elif line.strip():
            if row: yield (*row, '\n'.join(text))
            row, text = (line.split() + ['', '', ''])[:3], []
    if row: yield (*row, '\n'.join(text))

def cells(gpu, vendor, rows_path, lines):
    """Of each executable whose loops are counted: the kernel's name, use, Kernel, row of the table, and cell."""
    rows = {tuple(row.split()[:2]): row.split()[2].split('/') for row in open(rows_path)}
    for name, spec, lanes, text in executables(lines):
        found = re.match(r'(\w+?)(?:_(f32|f16|bf16|i?q\w+|mxfp4|nvfp4))?$', name)
        if not found or found[1] not in KINDS or not lanes.isdigit(): continue
        values = [int(x) for x in spec.split(',')] if spec != '-' else []
        waves = INTEL_THREADS.get(gpu, 8) if vendor == 'intel' else rows[name, spec][4]
        kernel = Kernel(vendor, gpu, int(lanes), waves, values, text)
        try: use = KINDS[found[1]](kernel, found[1], found[2])
        except (ValueError, KeyError) as error: sys.exit(f'{gpu} {name} {spec}: {error}')
        if use: yield name, use[0], kernel, rows[name, spec], cell_of(kernel, use[1])

def worse(a, b):
    """By what the cells say, so that the worst of many is the same however they come."""
    return max(a, b, key=lambda cell: ([float(x) for x in cell.split('/')[:3]], cell))

def count(lines, gpu, vendor, rows_path, counted_path=os.devnull):
    """Of a kernel's executables for one use, which differ in constants that do not matter here, the worst."""
    worst = {(name, use): cell for name, use, cell in map(str.split, open(counted_path))}
    for name, use, _, _, cell in cells(gpu, vendor, rows_path, lines):
        worst[name, use] = worse(worst.get((name, use), cell), cell)
    for (name, use), cell in worst.items(): print(name, use, cell)

def layouts(lines, gpu, vendor, rows_path, _):
    """Of each executable of matvec that does not spill: GPU, kernel, use, Layout, and cell."""
    for name, use, kernel, (lanes, _, spills, *_), cell in cells(gpu, vendor, rows_path, lines):
        workgroup, rows, *_, width = kernel.spec[:9]
        subgroup = (kernel.spec + [0] * 3)[SUBGROUP_ID]
        if spills in ('0', '-'): print(gpu, name, use.split(',')[0], rows, workgroup, subgroup, width, lanes, cell)

# ---- comparing, and kernels that were added ----

# What is counted of a new kernel changes no row of others, and so is not in their key (made_by of tools/pipelines).

def attention_coop(kernel, name, dtype):
    """The loop over tiles of keys. In it are loops that load, first keys, and loops of products, first of scores, which
    may be in a loop over slices of a head. Compilers may drop a loop of one turn."""
    workgroup, head_dim, heads, _, _, _, _, k, _, size = kernel.spec
    keys, tile = 64, min((l for l in kernel.loops if sum(m < l for m in kernel.loops) >= 3), key=len)
    loops, each = sorted((l for l in kernel.loops if l < tile), key=min), workgroup / (32 * keys)
    copies, products = [keys * size / 8, keys * size / 32], [size / k, keys / k]
    parts = [(tile.difference(*loops), each)]
    for l in loops:
        inside, nested = [m for m in loops if m < l], any(l < m for m in loops)
        trips, by = (copies, workgroup) if kernel.loaded(l) else (products, 1)
        turns = 1 if inside else trips.pop(0) / by if len(trips) > 1 else trips[0] / by
        parts.append((l.difference(*inside), each * turns * (head_dim // size if inside or nested else 1)))
    return f'{head_dim},{heads}', parts

KINDS['attention_coop'] = attention_coop

def read_table(path):
    """Its first line, and (GPU, kernel, use): cell."""
    title, names, *rows = open(path).read().splitlines()
    return title, {(gpu, *row.split()[:2]): cell for row in rows
                   for gpu, cell in zip(names.split()[2:], row.split()[2:]) if cell != '-'}

def matches(globs, text):
    """As in tools/pipelines: alternatives between commas, but in a use, where * stands for anything but a comma."""
    return re.fullmatch('|'.join(re.escape(g).replace(r'\*', '.*') for g in globs.split(',')), text)

class Reason:
    """A row of the exceptions. instructions=N: that many vector instructions and no more; vector=P, all=P: a band,
    within which such counts may rise by P percent."""
    def __init__(self, row):
        self.rule, (self.gpus, self.kernels, self.use, excuses) = ' '.join(row[:4]), row[:4]
        numbers = dict(excuse.split('=') for excuse in excuses.split(',') if '=' in excuse)
        self.most, *self.band = (float(numbers.get(name, 0)) for name in ('instructions', 'vector', 'all'))

    def is_of(self, gpu, kernel, use):
        return matches(self.gpus, gpu) and matches(self.kernels, kernel) and self.use in ('*', use)

def compare(old_path, new_path, exceptions_path):
    """A reason is used while something takes about as many instructions as it allows."""
    (old_title, old), (title, new) = read_table(old_path), read_table(new_path)
    reasons = [Reason(line.split()) for line in open(exceptions_path) if line.strip() and line[0] != '#']
    for key, cell in new.items():
        now = [float(x) for x in cell.split('/')[:2]]
        if title != old_title or key not in old: continue
        before = [float(x) for x in old[key].split('/')[:2]]
        here = [reason for reason in reasons if reason.is_of(*key)]
        excused = [reason for reason in here if now[0] <= reason.most]
        for reason in excused:
            if 1.02 * now[0] > reason.most: print('used:', reason.rule)
        bands = [max(2, *percents) for percents in zip((0, 0), *(reason.band for reason in here))]
        for what, a, b, band in zip(('vector instructions', 'instructions'), before, now, bands):
            if b > (1 + band / 100) * a and not excused: print(*key[:2], f'{key[2]}: {what} {a:g} -> {b:g}')
    lacks, extra = len(new.keys() - old.keys()), len(old.keys() - new.keys())
    if title == old_title and (lacks or extra):
        print(f'the table of instructions lacks {lacks} cells and has {extra} too many: tools/pipelines --update')

if __name__ == '__main__':
    command, *arguments = sys.argv[1:]
    if command == 'count': count(sys.stdin, *arguments)
    elif command == 'layouts': layouts(sys.stdin, *arguments)
    elif command == 'compare': compare(*arguments)
    else: sys.exit(__doc__)
