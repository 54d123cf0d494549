#!/usr/bin/env python3
"""Which rows of tools/pipelines' tables still hold. A folder has the tables and their key, pipelines-key.txt, in which
a kernel's line is the hash of its SPIR-V and of its rows in all tables: a row that was edited, or that came with a
merge, holds no more than those of other SPIR-V.

  unchanged.py key FOLDER < LISTS      LISTS: of list_pipelines on several devices. Writes the kernels' lines
  unchanged.py split WORK FOLDERS...   for each WORK/GPU.list, of list_pipelines on the GPU, writes GPU.todo, those of
                                       its lines that are to be compiled, and GPU.rows and GPU.counts, the rows that
                                       hold of the first of FOLDERS that has such of the kernel. WORK/made_by is what
                                       their keys must begin with
"""
import collections, glob, hashlib, os, sys

from instructions import read_table

class Folder:
    def __init__(self, path):
        """rows, counts: (GPU, kernel): {specialisation or use: cell}."""
        self.rows, self.counts = collections.defaultdict(dict), collections.defaultdict(dict)
        self.kernels = collections.defaultdict(list)
        tables = glob.glob(f'{path}/pipelines-*.txt') + glob.glob(f'{path}/instructions.txt')
        for table in sorted(tables):
            if table.endswith(('-key.txt', '-exceptions.txt')): continue
            of = self.counts if table.endswith('/instructions.txt') else self.rows
            for (gpu, kernel, use), cell in sorted(read_table(table)[1].items()):
                of[gpu, kernel][use] = cell
                self.kernels[kernel].append(f'{gpu} {use} {cell}\n')
        key = f'{path}/pipelines-key.txt'
        self.key = open(key).read().splitlines() if os.path.exists(key) else []

    def line(self, kernel, spirv):
        text = spirv + '\n' + ''.join(self.kernels[kernel])
        return f'kernel {kernel} {hashlib.sha256(text.encode()).hexdigest()[:16]}'

def key(path):
    spirv = {kernel: spirv for kernel, _, spirv in map(str.split, sys.stdin)}
    folder = Folder(path)
    for kernel in sorted(spirv): print(folder.line(kernel, spirv[kernel]))

def split_gpu(gpu, listed, folders):
    """listed: (kernel, its SPIR-V): {specialisation: line}."""
    todo, rows, counts = [], [], []
    for (kernel, spirv), lines in listed.items():
        holding = next((f for f in folders if f.line(kernel, spirv) in f.key), None)
        known, counted = (holding.rows[gpu, kernel], holding.counts[gpu, kernel]) if holding else ({}, {})
        if counted and known.keys() - lines.keys(): known, counted = {}, {}   # the worst may be one that is gone
        todo += [line for spec, line in lines.items() if spec not in known]
        rows += [f'{kernel} {spec} {cell}' for spec, cell in known.items() if spec in lines]
        counts += [f'{kernel} {use} {cell}' for use, cell in counted.items()]
    return {'todo': todo, 'rows': rows, 'counts': counts}

def split(work, *paths):
    made_by = open(f'{work}/made_by').read().splitlines()
    folders = [f for f in map(Folder, paths) if f.key[:len(made_by)] == made_by]
    for path in glob.glob(f'{work}/*.list'):
        listed = collections.defaultdict(dict)
        for line in open(path).read().splitlines():
            kernel, spec, spirv = line.split()
            listed[kernel, spirv][spec] = line
        gpu = os.path.basename(path).removesuffix('.list')
        for name, lines in split_gpu(gpu, listed, folders).items():
            with open(f'{work}/{gpu}.{name}', 'w') as out: out.writelines(line + '\n' for line in lines)

if __name__ == '__main__':
    command, *arguments = sys.argv[1:]
    if command == 'key': key(*arguments)
    elif command == 'split': split(*arguments)
    else: sys.exit(__doc__)
