import sys, time
sys.path[:0]=['src','scratch']
import jax, jax.numpy as jnp, numpy as np
from vitrify.net.kernels import attention as A, mlp as L, norm as N, tiles as T
import attention_t as AT
from vitrify.net.transformer import Head
key=jax.random.key(0); M,B,P,H,d=512,32,128,4,16
def rnd(i,*s,dt=jnp.bfloat16): return jax.random.normal(jax.random.fold_in(key,i),s,dt)
def bench(name,fn,args,ref=None):
    try:
        f=jax.jit(jax.vmap(fn)); t0=time.perf_counter(); o=jax.block_until_ready(f(*args)); tc=time.perf_counter()-t0
        t0=time.perf_counter()
        for _ in range(8): r=f(*args)
        jax.block_until_ready(r); dt=(time.perf_counter()-t0)/8*1e3
        err=0 if ref is None else max(float(jnp.linalg.norm((x-y).astype(jnp.float32))/(1e-9+jnp.linalg.norm(y.astype(jnp.float32)))) for x,y in zip(jax.tree.leaves(o),jax.tree.leaves(ref)))
        print(f'{name:50} {dt:7.3f} ms  first {tc:.1f} s  diff {err:.1e}',flush=True)
        return o
    except Exception as e: print(name,'FAILED',str(e)[:250],flush=True)
for dt in (jnp.bfloat16,jnp.float32):
    qkv,sh,g=rnd(0,M,B,P,3,H,d,dt=dt),rnd(1,M,3,H,d,dt=dt),rnd(2,M,B,P,H,d,dt=dt)
    ref=None
    for mod,nm in ((A,'plain'),(AT,'transposed')):
        for tile,w in ((64,4),(64,2),(128,4),(128,8),(32,1),(32,2)):
            mod.MAX_TILE,mod.WARPS=tile,w
            t=A.Tiling(Head(),P) if mod is A else AT.Tiling(Head(),P)
            inp=(lambda a,b: mod.Inputs(a,b))
            if nm=='plain': bench(f'{dt.__name__} attention forward {tile} {w}',lambda a,b: mod._forward(inp(a,b),t)[0],(qkv,sh))
            fw=jax.jit(jax.vmap(lambda a,b: mod._forward(inp(a,b),t)[1][1:]))(qkv,sh)
            o=bench(f'{dt.__name__} attention backward {nm} {tile} {w}',lambda a,b,m,l,g: tuple(mod._backward(t,(inp(a,b),m,l),g)[0][:2]),(qkv,sh,*fw,g),ref)
            ref=o if ref is None else ref
    if dt==jnp.float32: break
    del qkv,g,fw,o,ref
x=[rnd(3,M,4096,64),rnd(4,M,64,256)*.1,rnd(5,M,256),rnd(6,M,256,64)*.1,rnd(7,M,64)]; g=rnd(8,M,4096,64)
ref=[None]*3
for rows,w in ((128,4),(64,4),(128,8),(256,8),(64,2)):
    L.ROWS,L.WARPS=rows,w
    o=bench(f'mlp forward {rows} {w}',lambda *a: L._forward(L.Layer(*a),False)[0],x,ref[0]); ref[0]=ref[0] if ref[0] is not None else o
    def dx(*a):
        r=L._backward(False,L.Layer(*a[:5]),a[5])[0]; return r.x
    o=bench(f'mlp backward x {rows} {w}',dx,[*x,g],ref[1]); ref[1]=ref[1] if ref[1] is not None else o
L.ROWS=128
for rows,w,st,chunk,share in ((64,4,1,64,2048),(64,4,2,64,2048),(64,4,3,64,2048),(128,4,2,64,2048),(128,8,2,64,2048),(128,8,3,64,2048),(64,8,3,128,2048),(64,4,3,64,4096),(128,8,2,128,2048),(32,4,3,64,2048)):
    L.SUMMED_ROWS,L.WARPS,T.STAGES,L.CHUNK,L.SHARE=rows,w,st,chunk,share
    o=bench(f'mlp matrices rows {rows} warps {w} stages {st} chunk {chunk} share {share}',lambda *a: tuple(L._matrix_gradients(L.Layer(*a[:5]),a[5],False)),[*x,g],ref[2]); ref[2]=ref[2] if ref[2] is not None else o
T.STAGES=1
w_,b_=rnd(9,M,64),rnd(10,M,64)
for tile,rows,wp in ((1<<13,128,4),(1<<12,64,4),(1<<12,64,2),(1<<13,128,8),(1<<11,32,2),(1<<11,32,1)):
    N.TILE,N.MAX_ROWS,N.WARPS=tile,rows,wp
    bench(f'norm forward {rows} {wp}',lambda x,w,b: N._forward(x,w,b,1e-5,False)[0],(x[0],w_,b_))
    bench(f'norm backward {rows} {wp}',lambda x,w,g: N._backward(1e-5,False,(x,w),g),(x[0],w_,g))
