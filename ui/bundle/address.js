"use strict";(()=>{var u=["compare","batching","fit","stories","history","claims"],d={worth:"compare"},b=["stories","history","claims"],m=["q","of","axis","machine","since","until",
"at","pins","beside"],v=["view","model","gpu","gpus","context","batch","story","name",...m],r=Object.fromEntries(u.map(e=>[e,{}])),h={},E=window.gradio_config?.
components.find(({props:e})=>e.elem_id==="pages"),o=E?.props.selected??"compare",w=o,a="",p=()=>{let e=new URL(location.href).searchParams;r.history=Object.fromEntries(
m.map(t=>[t,e.get(t)]))};p();var i=[],L=()=>{let e=(new URL(location.href).searchParams.get("view")||"").toLowerCase();return d[e]||e},y=e=>{o=e,document.title=
e[0].toUpperCase()+e.slice(1)+" - tokendyno"},O=e=>{let t=new URL(location.href);v.forEach(s=>t.searchParams.delete(s));for(let[s,n]of Object.entries({view:e,...r[e]}))
n!==""&&n!==null&&n!==void 0&&t.searchParams.set(s,n);return t},l=()=>navigator.userActivation.hasBeenActive,S=e=>{h[o]=new URL(location.href).searchParams.get(
"run");let t=O(e);t.searchParams.delete("run"),h[e]&&t.searchParams.set("run",h[e]),l()&&t.href!==location.href&&history.pushState(history.state,"",t.href)},f=(e,t)=>{
let s=O(e);if(t&&l()&&s.href!==location.href){history.pushState(history.state,"",s.href);return}l()&&s.href!==location.href&&history.replaceState(history.state,
"",s.href)},g=(e,t)=>{let s=Object.fromEntries(e.map((n,c)=>[n,t[c]]));if(s.gpu==="this machine"&&(s.gpu=""),s.gpus===1&&(s.gpus=""),"amounts"in s){let{context:n,
batch:c}=JSON.parse(s.amounts||"{}");Object.assign(s,{context:n,batch:c===1?"":c}),delete s.amounts}return s};window.tokendynoAddress={enter(e,t){a=t[u.indexOf(
o)]??(a||t[0]);let s=i.indexOf(e),n=s===i.length-1;return e!==o&&(b.includes(e)||(r[e].model=a),s<0?S(e):n&&f(e),y(e)),i.splice(0,s+1),a},tell(e,t,s){Object.assign(
r[e],g(t,s)),e===o&&f(e)},note(e,t){h[e]=t},get page(){return o},keep(e,t,s){r[e]=t,e===o&&f(e,s)}};watch("value",()=>{if(!props.value)return;y(w=props.value);let e=new URL(
location.href).searchParams.get("view");e in d&&document.getElementById(e)?.scrollIntoView()});window.addEventListener("popstate",()=>{let e=L(),t=u.includes(e)?
e:w;if(t==="history"&&p(),t===(i.at(-1)??o))return;i.push(t),[...document.querySelectorAll('#pages [role="tab"]')].find(n=>n.textContent.trim().toLowerCase()===
t)?.click()});})();
