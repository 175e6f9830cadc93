import sys, time, gzip, json, os, glob, collections, itertools
sys.path[:0]=['src','benchmarks']
import jax, jax.numpy as jnp, numpy as np
OUT=os.environ['OUT']
import gpu
print(jax.__version__, jax.devices())
def quiet():
    o=jax.profiler.ProfileOptions(); o.python_tracer_level=0; return o
def table(folder, top=45):
    path=sorted(glob.glob(folder+'/**/perfetto_trace.json.gz',recursive=True))[-1]
    ev=json.load(gzip.open(path))
    ev=ev['traceEvents'] if isinstance(ev,dict) else ev
    names={e['pid']:e['args'].get('name','') for e in ev if e.get('name')=='process_name'}
    return ev,names
def kernels(folder, steps, top=40):
    ev,names=table(folder)
    threads={(e['pid'],e['tid']):e['args'].get('name','') for e in ev if e.get('name')=='thread_name'}
    c=collections.Counter(); n=collections.Counter()
    for e in ev:
        if e.get('ph')=='X' and 'GPU' in names.get(e['pid'],'') and 'Stream' in threads.get((e['pid'],e['tid']),''):
            c[e['name']]+=e['dur']; n[e['name']]+=1
    tot=sum(c.values())
    print('total us/step',tot/steps, 'kernels/step', sum(n.values())/steps)
    for k,v in c.most_common(top): print(f'{v/tot:6.1%} {v/steps:9.1f} us/step {n[k]/steps:5.1f}x {k[:90]}')
def host(folder, top=40):
    ev,names=table(folder)
    c=collections.Counter(); n=collections.Counter()
    for e in ev:
        if e.get('ph')=='X' and 'GPU' not in names.get(e['pid'],''):
            c[e['name'][:70]]+=e['dur']; n[e['name'][:70]]+=1
    for k,v in c.most_common(top): print(f'{v/1e6:8.2f} s {n[k]:6d}x {k}')

def rate(precision='bfloat16', members=512, steps=30):
    try:
        p=gpu.program(precision,members,5000)
        s=p.begin(); s=p.advance(s,0,3)
        t0=time.perf_counter(); s=p.advance(s,5,steps); dt=time.perf_counter()-t0
        peak=(jax.devices()[0].memory_stats() or {}).get('peak_bytes_in_use',0)/2**30
        print(precision,members,f'compile {p.compile_seconds:.1f} s {members*steps/dt:,.0f} member-steps/s, {dt/steps*1e3:.2f} ms/step peak {peak:.1f} GiB',flush=True)
    except Exception as e: print(precision,members,'FAILED',str(e)[:400],flush=True)
def pieces():
    p=gpu.program('bfloat16',512,5000)
    lane=p.lanes[0]
    def rows(values):
        def one(values):
            sb,_,rc=p._parts(values)
            return p._rows(sb,rc,values['data_seed'],jnp.int32(3))
        return p._each(one)(values)
    t0=time.perf_counter(); jax.jit(rows).lower(lane).compile(); print('rows alone: compile',time.perf_counter()-t0,flush=True)
    batch=jax.eval_shape(rows,lane)
    def grads(lane_state,values,batch):
        def one(values,member,batch): return jax.grad(lambda q: p.loss(values,q,batch))(member.parameters)
        return p._each(one)(values,lane_state,batch)
    t0=time.perf_counter(); l=jax.jit(grads).lower(p.shapes,lane,batch); t1=time.perf_counter(); l.compile(); print('gradient alone: trace',t1-t0,'compile',time.perf_counter()-t1,flush=True)
def step(precision='bfloat16', members=512, steps=50, prof=True):
    p=gpu.program(precision,members,5000)
    os.makedirs('/tmp/c',exist_ok=True)
    if prof:
        with jax.profiler.trace('/tmp/c_'+precision,create_perfetto_trace=True,profiler_options=quiet()): p.compiled
        print('host events while compiling'); host('/tmp/c_'+precision)
    t0=time.perf_counter(); s=p.begin(); print(precision,'compile',p.compile_seconds)
    s=p.advance(s,0,5)
    for _ in range(2):
        t0=time.perf_counter(); s=p.advance(s,5,steps); dt=time.perf_counter()-t0
        print(precision,members,f'{members*steps/dt:,.0f} member-steps/s, {dt/steps*1e3:.2f} ms/step',flush=True)
    if prof:
        with jax.profiler.trace('/tmp/t_'+precision,create_perfetto_trace=True,profiler_options=quiet()): s=p.advance(s,60,3)
        kernels('/tmp/t_'+precision,3)
        with gzip.open(f'{OUT}/hlo_{precision}.txt.gz','wt') as f: f.write(p.compiled[1].as_text())
    print('excess',p.measure(s)['excess'].mean())
    return p,s
for what in sys.argv[1:]:
    print('=====',what,flush=True)
    try: exec(what)
    except Exception as e:
        import traceback; traceback.print_exc()
