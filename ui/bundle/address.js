"use strict";(()=>{var u=["compare","batching","fit","stories","history","claims"],d={worth:"compare"},E=["stories","history","claims"],m=["q","of","axis","machine","since","until",
"at","pins","beside"],g=["view","model","gpu","gpus","context","batch","story","name",...m],r=Object.fromEntries(u.map(t=>[t,{}])),f={},L=window.gradio_config?.
components.find(({props:t})=>t.elem_id==="pages"),n=L?.props.selected??"compare",p=n,a="",w=()=>{let t=new URL(location.href).searchParams;r.history=Object.fromEntries(
m.map(e=>[e,t.get(e)]))};w();var i=[],S=()=>{let t=(new URL(location.href).searchParams.get("view")||"").toLowerCase();return d[t]||t},y={},O=()=>{document.title=
(y[n]||n[0].toUpperCase()+n.slice(1))+" - tokendyno"},b=t=>{n=t,O()},v=t=>{let e=new URL(location.href);g.forEach(s=>e.searchParams.delete(s));for(let[s,o]of Object.
entries({view:t,...r[t]}))o!==""&&o!==null&&o!==void 0&&e.searchParams.set(s,o);return e},l=()=>navigator.userActivation.hasBeenActive,P=t=>{f[n]=new URL(location.
href).searchParams.get("run");let e=v(t);e.searchParams.delete("run"),f[t]&&e.searchParams.set("run",f[t]),l()&&e.href!==location.href&&history.pushState(history.
state,"",e.href)},h=(t,e)=>{let s=v(t);if(e&&l()&&s.href!==location.href){history.pushState(history.state,"",s.href);return}l()&&s.href!==location.href&&history.
replaceState(history.state,"",s.href)},k=(t,e)=>{let s=Object.fromEntries(t.map((o,c)=>[o,e[c]]));if(s.gpu==="this machine"&&(s.gpu=""),s.gpus===1&&(s.gpus=""),
"amounts"in s){let{context:o,batch:c}=JSON.parse(s.amounts||"{}");Object.assign(s,{context:o,batch:c===1?"":c}),delete s.amounts}return s};window.tokendynoAddress=
{enter(t,e){a=e[u.indexOf(n)]??(a||e[0]);let s=i.indexOf(t),o=s===i.length-1;return t!==n&&(E.includes(t)||(r[t].model=a),s<0?P(t):o&&h(t),b(t)),i.splice(0,s+1),
a},tell(t,e,s){Object.assign(r[t],k(e,s)),t===n&&h(t)},note(t,e){f[t]=e},title(t,e){y[t]=e,t===n&&O()},get page(){return n},keep(t,e,s){r[t]=e,t===n&&h(t,s)}};watch(
"value",()=>{if(!props.value)return;b(p=props.value);let t=new URL(location.href).searchParams.get("view");t in d&&document.getElementById(t)?.scrollIntoView()});
window.addEventListener("popstate",()=>{let t=S(),e=u.includes(t)?t:p;if(e==="history"&&w(),e===(i.at(-1)??n))return;i.push(e),[...document.querySelectorAll('#p\
ages [role="tab"]')].find(o=>o.textContent.trim().toLowerCase()===e)?.click()});})();
