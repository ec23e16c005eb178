"use strict";(()=>{var Ie=e=>{new MutationObserver(()=>e()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};function y(e,t,n){let o=document.createElement(e);return t&&(o.className=t),n!==void 0&&(o.textContent=n),o}function Be(e,t){let n=y("tr","");n.append(y("th","",
e),...t.map(o=>{let r=y("th","arm-"+o.name.toLowerCase());return r.append(y("span","td-arm",o.name)),r}));for(let o of n.querySelectorAll("th"))o.scope="col";return n}
function _(e,t){e.textContent!==t&&(e.textContent=t)}function S(e){return element.querySelector(e)}function V(e){return getComputedStyle(element).getPropertyValue(
e).trim()}function q(e){return e.toLocaleString("en-US")}function se(e){return e>=100?Math.round(e)+" s":e.toFixed(e>=10?1:2)+" s"}function ht(e){return e>=4*2**
30?{unit:"GiB",scale:1/2**30}:e>=2*2**20?{unit:"MiB",scale:1/2**20}:{unit:"KiB",scale:1/1024}}var Fn={queued:"Queued",running:"Running",done:"Done",failed:"Failed",cancelled:"Stopped",interrupted:"Interrupted"},gt=/^(localhost|127(\.\d+){3}|\[::1\])$/.test(
location.hostname);function xt(e,t){_(S(".td-status"),Fn[e]||e),e==="queued"&&t&&_(S(".td-message"),t),element.dataset.status=e}function me(e){element.classList.
toggle("td-bare",e)}function wt(e,t){for(let n of["status","empty-run"])_(S(".td-"+n),"");_(S(".td-failure"),t),me(!0),trigger("finished",{run:e,status:"unknown"})}
function kt(e,t){for(let n of["status","over"])delete element.dataset[n];element.dataset.run=e;for(let n of["status","title","note","failure","message","connect\
ion","unkept",...t])_(S(".td-"+n),"");S(".td-remarks").replaceChildren(),delete S(".td-remarks").dataset.shown}function yt(e){_(S(".td-unkept"),e?"▲ "+e:"")}function bt(e,t){
let n=e==="failed"||e==="interrupted";return _(S(".td-failure"),n?t||"The run ended unexpectedly.":""),_(S(".td-message"),n?"":t),n}function Ue(e){return S(e)}function vt(e){
if(S(".td-link").hidden=S(".td-files").hidden=!e,!e)return;let t=new URL(location.href);t.search="?"+new URLSearchParams({run:e}),t.hash="",Ue(".td-permalink").
href=t.href,_(S(".td-permalink"),t.search),Ue(".td-kept").href="?"+new URLSearchParams({view:"history",q:e}),S(".td-kept").hidden=e.startsWith("recorded-");for(let r of[
"dyno","html","json"])Ue(".td-file-"+r).href="files/"+encodeURIComponent(e)+"."+r;S(".td-file-html").hidden=!S(".td-plot");let n=new URL(location.href),o=n.searchParams.
get("view")||window.tokendynoAddress?.page;if(o&&o!=="compare"&&o!=="batching"){window.tokendynoAddress?.note(element.closest("#batch-live")?"batching":"compare",
e);return}n.searchParams.set("run",e);for(let r of["worth","sweep"])n.searchParams.delete(r);n.href!==location.href&&history.replaceState(history.state,"",n.href)}
async function Dn(){let{href:e}=Ue(".td-permalink");try{await navigator.clipboard.writeText(e),_(S(".td-copied"),"Copied")}catch{window.prompt("Copy this link:",
e)}setTimeout(()=>_(S(".td-copied"),""),2e3)}S(".td-copy").addEventListener("click",Dn);var qe=["t","lat","kvs","kvf"];function Mt(){return{t:[],lat:[],kvs:[],kvf:[],st:[],sm:[],text:"",chars:0}}function Je(e){return[e.t.length,e.st.length,e.chars]}
function Lt(e){return Object.fromEntries([...qe,"st","sm"].map(t=>[t,e[t].length]))}function Tt(e,t){let n={tokens:0,samples:0,added:""},o=e.t.length;if(t.first<=
o&&t.n>o){for(let s of qe){let i=e[s],g=t[s];for(let p=o-t.first;p<g.length;p++)i.push(g[p])}n.tokens=t.n-o}let r=e.st.length;if(t.sfirst<=r&&t.sn>r){for(let s=r-
t.sfirst;s<t.st.length;s++)e.st.push(t.st[s]),e.sm.push(t.sm[s]);n.samples=t.sn-r}if(t.cfirst<=e.chars&&t.cn>e.chars){let s=e.chars-t.cfirst;n.added=s?Array.from(
t.text).slice(s).join(""):t.text,e.text+=n.added,e.chars=t.cn}return n}function _t(e,t){e.text=t.text,e.chars=t.cn}function St(e,t){let n=Math.min(e.length,t.length);
for(let o=0;o<n;o++)if(e.charCodeAt(o)!==t.charCodeAt(o))return o;return-1}function X(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<t?n=r+1:o=r}return n}function Et(e,t,n,o){let r=Math.max(0,n-t);if(r<=o)return Array.from({length:r},
(i,g)=>t+g);let s=2;for(;s*(o/2-2)<r;)s*=2;for(;;){let i=zn(e,t,n,s);if(i.length<=o)return i;s*=2}}function zn(e,t,n,o){let r=[t];for(let s=t-t%o;s<n;s+=o){let i=Math.
max(s,t),g=Math.min(s+o,n),p=[];for(let f of e){let a=Math.min(g,f.length);if(i>=a)continue;let l=i,u=i;for(let m=i+1;m<a;m++)f[m]<f[l]?l=m:f[m]>f[u]&&(u=m);p.push(
l,u)}p.sort((f,a)=>f-a);for(let f of p)f>r[r.length-1]&&r.push(f)}return r[r.length-1]!==n-1&&r.push(n-1),r}function ae(e,t,n){return e.at==="sample"?t==="second"?o=>n.st[o]:o=>ge(n.t,n.st[o]):t==="second"?o=>n.t[o]:o=>o}function je(e,t,n,[o,r]){if(e.at==="sample"){let[
s,i]=t==="second"?[o,r]:[he(n.t,o),he(n.t,r)];return[X(n.st,s),X(n.st,i)]}return t==="second"?[X(n.t,o),X(n.t,r)]:[Math.floor(o),Math.ceil(r)]}function Ye([e,t],n,o){
let r=o.filter(i=>i.t.length);if(!r.length)return null;let s=r.map(({t:i})=>n==="second"?[he(i,e),he(i,t)]:[ge(i,e),ge(i,t)]);return[Math.min(...s.map(i=>i[0])),
Math.max(...s.map(i=>i[1]))]}function At(e,{t},n){return!t.length||n>t[t.length-1]?null:e==="second"?n:n<t[0]?null:X(t,n)}function he(e,t){if(!e.length)return 0;
let n=e.length-1,o=Math.min(n,Math.max(0,t)),r=Math.floor(o);return r===n?e[n]:e[r]+(o-r)*(e[r+1]-e[r])}function ge(e,t){let n=X(e,t);return n===0?0:n>=e.length?
e.length-1:n-1+(t-e[n-1])/(e[n]-e[n-1])}var Hn=.98,Xn=2,Kn=1.5,Wn=20;function xe(e,t){let n=Float64Array.from(e.flatMap(s=>s.slice(t))).sort();if(n.length<Wn)return null;
let o=n[Math.floor(Hn*(n.length-1))];return n[n.length-1]>Xn*o?Kn*o:null}var Ct=[{color:"#4269d0",dash:"solid"},{color:"#ff725c",dash:"5px,2.5px"},{color:"#3ca951",dash:"10px,3px"},{color:"#a463f2",dash:"9px,3px,2px,3px"},{color:"#9c\
6b4e",dash:"4px,2px,1px,2px,1px,2px"}];function ie(e,t){return Ct[(e.line??t)%Ct.length]}var Ot="1px,3px",Vn=400;function Fe(e,t){return e.flatMap((n,o)=>{let r={
xaxis:"x"+F(o),yaxis:"y"+F(o),type:"scatter",mode:"lines"};if(!t.head)return[{...r,x:[0,1],y:[0,1],line:{width:0},hoverinfo:"skip",showlegend:!1}];let s=t.part?
{...t,series:t.part}:t,i=Me(n,t),g=Jn(n,o,r,i,s);return n.annotations&&g.push(...Nt(n,r,s)),t.tops&&t.tops[o]!==null&&g.push(...$n(n,o,r,s)),g.push(eo(n,o,r,t)),
g.concat(to(n,o,r,i,t))})}function F(e){return e?e+1:""}function Y(e){return e.replace(/[<>&]/g,"")}function K(e,t){return t.unit==="forward"?0:e.first}function W(e){
return e.lines.filter(t=>!t.curve)}function Qe(e,t,{head:n,series:o,axis:r,zoom:s}){let i=K(e[0],n),g=t.flatMap(a=>e.map(l=>o[a][l.column])),p=i,f=Math.max(0,...g.
map(a=>a.length));if(s){let[a,l]=je(e[0],r,o[t[0]],s);p=Math.max(p,a-1),f=Math.min(f,l+2)}return Et(g,p,f,Vn)}function $e(e,t,{head:n,series:o}){return e.curve?
n.arms[t][e.curve]:o[t]}function Pt(e,t){let n=0;for(let o of e.lines)t.series.forEach((r,s)=>{let i=$e(o,s,t);if(i)for(let g of i[o.column])g>n&&(n=g)});return n}
function Gn(e,{series:t}){let n=1/0;for(let o of W(e))for(let r of t)for(let s of r[o.column])s<n&&(n=s);return n<1/0?n:0}function De(e,t,n){return e.unit!=="by\
tes"?{unit:e.unit,scale:1}:n||ht(Pt(e,t))}function Me(e,t){let n=o=>t.series.some((r,s)=>{let i=$e(o,s,t),g=i&&i[o.column];return g&&g.length&&g[g.length-1]>0});
return[...new Set(e.lines.filter(o=>o.kind&&n(o)).map(o=>o.kind))]}function Jn(e,t,n,o,r){let{head:s,series:i,hidden:g,axis:p,ended:f}=r,{scale:a}=r.units[t],l=[],
u=W(e),m=i.map((c,b)=>b),x=u[0].at==="token"&&p==="token"?m.map(()=>Qe(u,m,r)):m.map(c=>Qe(u,[c],r)),w=(c,b,k,d)=>{let v=s.arms[b].name,T=ie(s.arms[b],b);l.push(
{...n,x:k,y:d,name:Y([v,c.kind,c.label].filter(Boolean).join(" ")),showlegend:!1,hoverinfo:"skip",visible:![v,c.kind,c.label].some(L=>L&&g.has(L)),meta:{chart:e.
key,arm:v,kind:c.kind,curve:c.curve},line:{width:c.width,color:T.color,dash:c.curve?Ot:T.dash},opacity:c.curve?.9:1})};for(let c of e.lines)for(let b of m){if(c.
kind&&!o.includes(c.kind))continue;let k=$e(c,b,r),d=c.scale*a;if(!k)continue;let v=k[c.column];if(c.curve&&c.at==="sample"){let L=p==="second"?k.x:k.x.map(N=>N===
null?null:ge(i[b].t,N));w(c,b,L,v.map(N=>N===null?null:N*d));continue}if(c.curve){let L=Ze(c,s.arms[b]),{t:N}=i[b];if(p==="token"){let M=f?Math.max(...i.map(C=>C.
t.length))-1+L:1/0,E=Qn(k.x,M);w(c,b,E.map(C=>C-L),E.map(C=>ve(k.x,v,C)*d));continue}let A=Qe(Yn,[b],r).filter(M=>M+L>=k.x[0]);w(c,b,A.map(M=>N[M]),A.map(M=>ve(
k.x,v,M+L)*d));continue}let T=x[b].filter(L=>L<v.length);w(c,b,T.map(ae(c,p,k)),T.map(L=>v[L]*d))}return l}var Yn=[{at:"token",column:"lat",first:0,scale:1,kind:"",
width:1,curve:"",label:""}];function Ze(e,t){return e.at==="length"?t.prompt_tokens:0}function Qn(e,t){let n=e.filter(o=>o<=t);return n.length&&n.length<e.length&&
n[n.length-1]<t?[...n,t]:n}function ve(e,t,n){let o=X(e,n);return o===0||o>=e.length?t[o?e.length-1:0]:t[o-1]+(t[o]-t[o-1])*(n-e[o-1])/(e[o]-e[o-1])}function $n(e,t,n,o){
let{head:r,series:s,hidden:i,axis:g,tops:p}=o,{unit:f,scale:a}=o.units[t],[l]=W(e);return r.arms.map((u,m)=>{let h=s[m][l.column],x=l.scale*a,w=[];for(let c=K(l,
r);c<h.length;c++)h[c]*x>p[t]&&w.push(c);return{...n,mode:"markers",x:w.map(ae(l,g,s[m])),y:w.map(()=>.985*p[t]),showlegend:!1,visible:!i.has(u.name),cliponaxis:!1,
marker:{symbol:"triangle-up"+(m%2?"-open":""),size:7,color:ie(r.arms[m],m).color},hoverinfo:"skip",text:w.map(c=>(h[c]*x).toPrecision(3)+" "+f),meta:{chart:e.key,
outliers:u.name}}})}function ze(e,t,{head:n,series:o,ended:r,axis:s,zoom:i,units:g},p){let f=e.lines.find(k=>k.curve==="floor"),a=n.arms.map((k,d)=>[k,o[d]]),l=f?
a.filter(([{floor:k}])=>k&&k[f.column].length):[];if(!l.length)return[];let{unit:u,scale:m}=g[t],h=l.map(([{floor:k},{t:d}])=>{let v=i?i[1]:r&&s==="token"?Math.
max(...o.map(L=>L.t.length))-1:1/0,T=s==="second"?ge(d,v):v;return ve(k.x,k[f.column],T)*f.scale*m}),x=h.map(k=>Number(k.toPrecision(3))),c=Math.max(...h)<1.1*Math.
min(...h)?x[0]:l.map(([k],d)=>Y(k.name)+" "+x[d]).join(", "),b=l.filter(([{floor:k}])=>k.exchanges).map(([{name:k,floor:d}])=>", exchanges of "+Y(k)+" "+d.exchanges).
join("");return[{text:"roofline bound "+c+" "+u+b,showarrow:!1,xref:"x"+F(t)+" domain",yref:"y"+F(t),x:1,y:Math.max(...h),xanchor:"right",yanchor:"bottom",font:{
size:10,color:p}}]}var Zn=.25;function eo(e,t,n,o){let{head:r,series:s,ended:i,axis:g}=o,{scale:p}=o.units[t],f=[0,Math.max(1,i?Math.max(...s.map(x=>x.t.length)):
r.max_new_tokens)];if(g==="second"){let x=Math.max(0,...s.flatMap(({t:c,st:b})=>[c,b].filter(k=>k.length).map(k=>k[k.length-1]))),w=10**Math.floor(Math.log10(Math.
max(1,x)));f=[0,i?x:Math.ceil((x+w/10)/w)*w]}let a=e.unit==="bytes"?Pt(e,o)*p:0,l=e.min_span*a,u=e.from_zero?0:Gn(e,o)*p,m=i?a:a+Zn*(a-u),h=[u-l/4,Math.max(m,u+
3*l/4)];return{...n,x:f,y:h,line:{width:0},hoverinfo:"skip",showlegend:!1,meta:{chart:e.key,extent:!0}}}function to(e,t,n,o,{head:r,hidden:s,neutral:i}){let g=(l,u,m)=>({
...n,x:[null],y:[null],name:Y(l),line:u,legend:m,showlegend:!0,hoverinfo:"skip",visible:s.has(l)?"legendonly":!0,meta:{legend:l}}),p="legend"+F(t),f=t?[]:r.arms.
map((l,u)=>g(l.name,{width:2,...ie(r.arms[u],u)},p));for(let l of o){let{width:u}=W(e).find(m=>m.kind===l);f.push(g(l,{width:u,color:i},p))}let a=l=>l.curve&&(!l.
kind||o.includes(l.kind))&&r.arms.some(u=>u[l.curve]);for(let l of new Set(e.lines.filter(a).map(u=>u.label)))f.push(g(l,{width:1.2,color:i,dash:Ot},p));return f}var It={compile:["diamond","◆"],recompile:["diamond","◆"],graph_skip:["x","✕"],window:["triangle-down","▼"],cache:["square","■"],gc:["circle","●"],throttle:[
"star","★"],foreign:["cross","✚"]},Rt=3;function Nt(e,t,{head:n,series:o,hidden:r,axis:s,ink:i}){let g=W(e)[0],p=K(g,n),f=[];return n.arms.forEach((a,l)=>{let u=o[l][g.
column],m=new Map(a.marks.filter(({token:w})=>w>=p&&w<u.length).reverse().map(w=>[w.token,w.kind]));if(!m.size)return;let h=[...m.keys()].sort((w,c)=>w-c),x=h.map(
w=>It[m.get(w)][0]);f.push({...t,mode:"markers",x:h.map(ae(g,s,o[l])),y:h.map(w=>u[w]*g.scale),marker:{symbol:x.map(w=>w+(l%2?"-open":"")),size:9,color:i,line:{
width:1.2,color:i}},hoverinfo:"skip",showlegend:!1,visible:!r.has(a.name),meta:{chart:e.key,annotations:a.name}})}),f}function et(e,t,n){let o=JSON.stringify(t.
map(s=>s.marks));if(e.dataset.shown===o)return;e.dataset.shown=o;let r=s=>(n==="forward"?"pass ":"token ")+q(s.token)+": "+s.text;e.title=t.flatMap(s=>s.marks.map(
i=>s.name+" "+r(i))).join(`
`),e.replaceChildren(...t.filter(s=>s.marks.length).map(s=>{let i=y("span","td-annotation arm-"+s.name.toLowerCase());i.append(y("span","td-arm",s.name));let g=s.
marks.slice(0,Rt).map(f=>It[f.kind][1]+" "+r(f)),p=s.marks.length-Rt;return i.append(document.createTextNode(g.join(", ")+(p>0?" and "+q(p)+" more":""))),i}))}var no=["arm","series","index","seconds","latency_s","kv_sliding_bytes","kv_full_bytes","memory_bytes"];function Bt(e,t){let n=[no.join(",")],o=e.unit==="forwar\
d"?"pass":"token";return e.arms.forEach(({name:r},s)=>{let{t:i,lat:g,kvs:p,kvf:f,st:a,sm:l}=t[s];i.forEach((u,m)=>n.push([r,o,m,u,g[m],p[m],f[m],""].join(","))),
a.forEach((u,m)=>n.push([r,"sample",m,u,"","","",l[m]].join(",")))}),n.join(`
`)+`
`}function Ut(e,t){let n=document.createElement("a");n.href=URL.createObjectURL(new Blob([e],{type:"text/csv"})),n.download=t,n.click(),setTimeout(()=>URL.revokeObjectURL(
n.href),1e4)}function oo(e,t,n,o){let{t:r,st:s}=n;if(e.at==="sample"){let g=t.second??(t.token<r.length?he(r,t.token):1/0),p=X(s,g);return!s.length||g>Math.max(s[s.length-1],
r.length?r[r.length-1]:0)?null:p>0&&(p>=s.length||g-s[p-1]<s[p]-g)?p-1:p}let i=t.token??X(r,t.second);return i>=o&&i<r.length?i:null}function le(e){return e.toLocaleString(
"en-US",{maximumSignificantDigits:4})}function ro({x:e},t,n){let o=[],r=null;return e.forEach((s,i)=>{s===null?(o.push(t[r]),r=null):(r===null||Math.abs(s-n)<Math.
abs(e[r]-n))&&(r=i)}),o}function qt(e,t,n,o){let{head:r,series:s,hidden:i}=o,{unit:g,scale:p}=o.units[t],f=Me(e,o),a=h=>!h.kind||f.includes(h.kind),[l]=e.lines.
filter(h=>!h.curve),u=W(e).filter(a),m=e.lines.filter(h=>h.curve&&h.at!=="sample"&&a(h));return r.arms.flatMap((h,x)=>{let w=oo(l,n,s[x],K(l,r));if(w===null||i.
has(h.name)||!u.length)return[];let c=u.map(d=>s[x][d.column][w]*d.scale*p),b=[c.map((d,v)=>le(d)+(u.length>1?" "+u[v].kind:"")).join(" + ")+" "+g],k=m.filter(d=>h[d.
curve]);if(k.length){let d=k.reduce((T,L)=>T+ve(h[L.curve].x,h[L.curve][L.column],w+Ze(L,h))*L.scale*p,0),v=Math.abs(d-c.reduce((T,L)=>T+L,0))<5e-4*d;b.push(k[0].
curve==="floor"?"roofline bound "+le(d):v?"as predicted":"predicted "+le(d))}for(let d of e.lines.filter(v=>v.curve&&v.at==="sample"&&h[v.curve])){let v=ro(h[d.
curve],h[d.curve][d.column],s[x].st[w]);b.push(d.label+" "+v.map(T=>le(T*d.scale*p)).join(", "))}return l.at==="token"&&n.token===void 0&&b.push(He(r)+" "+q(w)),
e.lines.some(d=>d.at==="length")&&b.push(q(h.prompt_tokens+w)+" tokens cached"),[{arm:h.name,text:b.join(", ")}]})}function He(e){return e.unit==="forward"?"pas\
s":"token"}function jt(e,t,n,o,{head:r,series:s,hidden:i,axis:g,units:p,tops:f}){let[a]=W(e),l=K(a,r),u=f[t]===null?1/0:f[t]/a.scale/p[t].scale,m=null,h=o;return e.
annotations&&r.arms.forEach((x,w)=>{if(i.has(x.name))return;let c=s[w][a.column],b=new Set(x.marks.map(T=>T.token)),k=ae(a,g,s[w]),[d,v]=je(a,g,s[w],[n-o,n+o]);
for(let T=Math.max(l,d);T<=Math.min(v,c.length-1);T++){let L=Math.abs(k(T)-n);L<=h&&(b.has(T)||c[T]>u)&&(h=L,m=k(T))}}),g==="second"?{second:Math.max(0,m??n)}:{
token:m??Math.max(0,Math.round(n))}}function Ft(e,{head:t,series:n,hidden:o}){return t.arms.flatMap((r,s)=>{let i=e.token??X(n[s].t,e.second);return o.has(r.name)?
[]:r.marks.filter(g=>g.token===i&&i<n[s].t.length).map(g=>r.name+" "+He(t)+" "+q(i)+": "+g.text)})}var so=5;function Dt(e,t,n,o){let r=null,s=null,i=null,g=x=>[e._fullLayout["xaxis"+F(x)],e._fullLayout["yaxis"+F(x)]];function p(x){let w=e.getBoundingClientRect(),
c=x.clientX-w.left,b=x.clientY-w.top;for(let k=0;k<o.length;k++){let[d,v]=g(k);if(c<d._offset||c>d._offset+d._length||b<v._offset||b>v._offset+v._length)continue;
let T=c-d._offset;return{i:k,x:d.p2l(T),reach:Math.abs(d.p2l(T+so)-d.p2l(T))}}return null}function f(x){let w=i&&i.head&&e._fullLayout?p(x):null;r=w&&jt(o[w.i],
w.i,w.x,w.reach,i),h()}function a(){r&&(r=null,h())}function l(x,w,c){let[b,k]=g(x);if(w===null||w<b.range[0]||w>b.range[1])return[];let d=y("i","td-moment "+c);
return Object.assign(d.style,{left:b._offset+b.l2p(w)+"px",top:k._offset+"px",height:k._length+"px"}),[d]}function u(x,w,c){let[b,k]=g(x),d=y("span","td-place",
c),v=Math.min(b._length,Math.max(0,b.l2p(w)));return Object.assign(d.style,{left:b._offset+v+"px",top:k._offset+k._length+1+"px",transform:"translateX(-"+100*v/
b._length+"%)"}),d}function m(x,w){let c=qt(o[x],x,w,i),[b,k]=g(x);if(!c.length)return[];let d=y("div","td-readout");Object.assign(d.style,{left:b._offset-4+"px",
width:b._length+8+"px",bottom:"calc(100% - "+k._offset+"px)"}),i.titles[x]&&d.append(y("strong","",i.titles[x]));for(let{arm:v,text:T}of c){let L=y("span","arm-"+
v.toLowerCase());L.append(y("b","td-arm",v),document.createTextNode(T)),d.append(L)}return[d]}function h(){let x=r||(s===null?null:{second:s}),w=[],c=x&&i&&i.head&&
e._fullLayout&&e._fullLayout.xaxis;c&&o.forEach((k,d)=>{if(!i.series.some(T=>T.t.length||T.st.length))return;let v=r?r.token??r.second:i.axis==="second"?s:null;
r?w.push(...l(d,v,"")):i.series.forEach((T,L)=>w.push(...l(d,At(i.axis,T,s),"arm-"+i.head.arms[L].name.toLowerCase()))),v!==null&&w.push(u(d,v,i.axis==="second"?
se(v):He(i.head)+" "+q(v))),w.push(...m(d,x))}),t.replaceChildren(...w);let b=c?Ft(x,i):[];n.hidden=!b.length,n.replaceChildren(...b.map(k=>y("span","",k)))}return e.
addEventListener("pointermove",f),e.addEventListener("pointerdown",x=>x.pointerType==="touch"?f(x):a()),e.addEventListener("pointerleave",a),{take(x){i=x,(r||s!==
null)&&h()},pointAt(x){s=x,h()},clear(){r=null,s=null,i=null,h()}}}function zt(e,t,n){let o=null,r=[];function s(){o=null,r=[],t.replaceChildren()}function i(l,u){s(),l.head&&(o=l,r=n.map((m,h)=>p(m,h,u)),f())}function g(l){return o&&
(o={...o,series:l}),f()}function p(l,u,m){let h=e._fullLayout["xaxis"+F(u)],x=e._fullLayout["yaxis"+F(u)],w=window.devicePixelRatio,c=y("canvas",""),b=c.getContext(
"2d"),k=Me(l,o);c.width=Math.ceil(h._length*w),c.height=Math.ceil(x._length*w),Object.assign(c.style,{left:h._offset+"px",top:x._offset+"px",width:h._length+"px",
height:x._length+"px"}),b.scale(w,w),t.append(c);let d=W(l).filter(v=>!v.kind||k.includes(v.kind)).flatMap(v=>o.series.map((T,L)=>({line:v,a:L,next:Math.max(K(v,
o.head),m[L][v.column]-1),drawnPx:0,shown:![o.head.arms[L].name,v.kind].some(N=>N&&o.hidden.has(N))})));return{x:h,y:x,pen:b,lines:d,scale:o.units[u].scale}}function f(){
return o?r.map(a).some(Boolean):!1}function a({x:l,y:u,pen:m,lines:h,scale:x}){let w=!1;for(let c of h){let{line:b,a:k}=c,d=o.series[k][b.column],v=d.length;if(!c.
shown||v-c.next<2)continue;let T=ae(b,o.axis,o.series[k]),L=ie(o.head.arms[k],k),N=l.l2p(T(c.next)),A=u.l2p(d[c.next]*b.scale*x),M=c.drawnPx;m.beginPath(),m.moveTo(
N,A);for(let E=c.next+1;E<v;E++){let C=l.l2p(T(E)),R=u.l2p(d[E]*b.scale*x);m.lineTo(C,R),M+=Math.hypot(C-N,R-A),N=C,A=R,w=w||l.autorange&&N>l._length||u.autorange&&
(A<0||A>u._length)}m.strokeStyle=L.color,m.lineWidth=b.width,m.setLineDash(L.dash==="solid"?[]:L.dash.split(",").map(parseFloat)),m.lineDashOffset=c.drawnPx,m.stroke(),
c.next=v-1,c.drawnPx=M}return w}return{take:i,follow:g,draw:f,clear:s}}function ue(){return window.Plotly?Promise.resolve():window.tokendynoPlotly??=new Promise(e=>{let t=()=>{let n=document.createElement("script");n.src=settings.plotly,
n.addEventListener("load",()=>e()),n.addEventListener("error",()=>{n.remove(),setTimeout(t,1e3)}),document.head.append(n)};t()})}var ao=760,io=250,lo=420,co=40,fo=()=>Math.round(Math.min(420,Math.max(200,.26*window.innerHeight))),uo={responsive:!0,displaylogo:!1,showTips:!1,showSendToCloud:!1,
displayModeBar:!1};function Ht(e,t,n,o,r){let s="",i=null,g=[],p=null,f=[],a=[],l=[],u=new Set,m=!1,h=0,x="token",w=null,c=0,b=!1,k=!1,d=!1,v=!1,T=!0,L=!1,N=0,A=0,
M=10,E=300,C=1e3,R=[],D=[];function J(P){P&&Un(),s=P,i=null,g=[],p=null,f=[],u=new Set,m=!1,T=!0,w=null,b=!1,o.clear(),r.clear()}function Q(P){t.forEach((B,U)=>{
let I="xaxis"+F(U),j=P[I+".range"]||[P[I+".range[0]"],P[I+".range[1]"]];P[I+".autorange"]?w=null:i&&j[0]!==void 0&&(w=j.map(Number))}),H()}function H(){T=!0,pe(
!0)}function $(P){P!==x&&(x=P,w=w&&Ye(w,x,g),H())}function Ce(P,B){if(!i||b||P.unit!=="ms")return null;let[U]=W(P),I=xe(g.map(j=>j[U.column]),K(U,i));return I===
null?null:I*U.scale*f[B].scale}function Pn(P,B){if(!i||!p||P.unit!=="ms")return null;let[U]=W(P),I=K(U,i),j=g.reduce((de,Oe)=>Oe[U.column].slice(I).reduce((oe,re)=>Math.
max(oe,re),de),0);return j?1.05*j*U.scale*f[B].scale:null}function Nn(){let P={head:i,series:g,part:p,ended:m,hidden:u,axis:x,zoom:w,units:f,ink:V("--body-text-\
color"),neutral:V("--body-text-color-subdued")};f=t.map((I,j)=>i?De(I,P,w&&f[j]):null),a=t.map(Ce),n.outliers.hidden=!b&&a.every(I=>I===null),n.outliers.setAttribute(
"aria-pressed",String(b)),_(n.outliers,b?"Cut outliers off":"Show outliers in full"),n.whole.hidden=w===null;for(let I of n.axes.querySelectorAll("button"))I.setAttribute(
"aria-pressed",String(I.dataset.axis===x));_(n.axes.firstElementChild,i&&i.unit==="forward"?"Passes":"Tokens");let B=Fe(t,{...P,units:f,tops:a}),U=B.filter(I=>!I.
meta?.extent&&I.y.some(Number.isFinite)).map(I=>I.yaxis);return l=t.map((I,j)=>!p&&!U.includes("y"+F(j))),B}function Rn(){let P=element.clientWidth<ao,B=t.length,
U=P?.13:.05,I=(1-U*(B-1))/B,j=element.clientWidth*(P?1:I)<lo,de=V("--body-text-color"),Oe=V("--border-color-primary"),oe={uirevision:s+"/"+c,datarevision:++h,paper_bgcolor:"\
rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:de,size:11,family:V("--font")||"sans-serif"},height:P?io*B:fo(),margin:{t:j?56:36,b:34,l:44,r:8,autoexpand:!1},
hovermode:!1,dragmode:"zoom",annotations:[]};return t.forEach((re,Z)=>{let Pe=Z*(I+U),ye=P?[0,1]:[Pe,Pe+I],be=P?[1-Pe-I,1-Pe]:[0,1],ut=re.unit==="bytes"?f[Z]&&f[Z].
unit:re.unit,Ne=i&&i.unit==="forward"&&re.encoder||re,Re=Y(Ne.title||(i?i.memory_label:"memory")).slice(0,co),pt=a[Z]??Pn(re,Z);D[Z]=j?"":Re[0].toUpperCase()+Re.
slice(1);let mt={gridcolor:Oe,zeroline:!1,linecolor:Oe,ticks:"",automargin:!1,showticklabels:!!i&&!Ne.note};oe["xaxis"+F(Z)]={...mt,domain:ye,anchor:"y"+F(Z),uirevision:[
s,c,x].join("/"),...w?{range:[...w],autorange:!1}:{},title:{text:x==="second"?"seconds":i&&i.unit==="forward"?"forward pass":"token",standoff:2},nticks:6},oe["y\
axis"+F(Z)]={...mt,domain:be,anchor:"x"+F(Z),rangemode:re.from_zero?"tozero":"normal",nticks:6,tickformat:",~r",...pt===null?{}:{range:[0,pt],autorange:!1},...l[Z]?
{showticklabels:!1}:{}},i&&oe.annotations.push(...ze(re,Z,{head:i,series:g,ended:m,axis:x,zoom:w,units:f},de)),oe.annotations.push({text:"<b>"+Re[0].toUpperCase()+
Re.slice(1)+"</b>"+(ut?", "+ut:""),showarrow:!1,xref:"paper",yref:"paper",x:ye[0],y:be[1],xanchor:"left",yanchor:"bottom",yshift:j?32:4,xshift:-4,font:{size:12}}),
Ne.note&&oe.annotations.push({text:Y(Ne.note),showarrow:!1,xanchor:"center",xref:"paper",yref:"paper",x:(ye[0]+ye[1])/2,y:(be[0]+be[1])/2});let jn={orientation:"\
h",x:ye[j?0:1],y:be[1],xanchor:j?"left":"right",yanchor:"bottom",bgcolor:"rgba(0,0,0,0)",font:{size:11},itemwidth:30};oe["legend"+F(Z)]=jn}),oe}async function pe(P){
if(!d||!T||L||document.hidden||!P&&performance.now()<N||!element.offsetParent)return;T=!1;let B=performance.now(),U=p||g,I=U.map(Lt),j=Nn(),de={head:i,series:g,
hidden:u,axis:x,units:f,tops:a,titles:D};L=!0;try{await Plotly.react(e,j,Rn(),uo)}finally{L=!1}qn(),de.series===g&&(o.take(de),r.take({...de,series:U},I)),requestAnimationFrame(
()=>setTimeout(()=>{R.push(performance.now()-B),R.length>5&&R.shift(),A=performance.now()+E,N=performance.now()+Math.max(E,Math.min(C,Math.min(...R)*M)),window.
tokendynoProbe&&window.tokendynoProbe.painted(R[R.length-1])},0)),ft()}function In(){T=!0,r.draw()&&(N=Math.min(N,A)),ft()}function ft(){if(!window.tokendynoProbe||
L||!i)return;let P=g.map(B=>B.t.length);requestAnimationFrame(()=>setTimeout(()=>window.tokendynoProbe.shows(P),0))}function Bn(P){let B=P.data[P.curveNumber].meta.
legend;return u.delete(B)||u.add(B),H(),!1}async function Un(){k||(k=!0,await ue(),d=!0,setInterval(()=>{element.isConnected&&pe(!1)},33),pe(!0))}function qn(){
if(!v){v=!0,e.on("plotly_relayout",Q),e.on("plotly_legendclick",Bn),e.on("plotly_legenddoubleclick",()=>!1),n.outliers.addEventListener("click",()=>{b=!b,H()});
for(let P of n.axes.querySelectorAll("button"))P.addEventListener("click",()=>$(P.dataset.axis));n.whole.addEventListener("click",()=>{w=null,c++,H()})}}return{
reset:J,take(P,B){i=P,g=B,T=!0},end(){m=!0,T=!0,pe(!0)},async picture(P){return await ue(),Plotly.downloadImage(e,{format:"png",filename:P,scale:2,width:e.clientWidth,
height:e.clientHeight})},get zoom(){return w&&(x==="token"?w:Ye(w,"token",g))},grow:In,only(P){if(p===P)return;let B=p&&P&&P.every((U,I)=>U.t.length>=p[I].t.length);
p=P,T=!0,B&&r.follow(P)&&(N=Math.min(N,A)),pe(!B)},touch(){T=!0,pe(!1)},pace(P,B,U){M=P,E=B,C=U}}}var po=10,mo=60,tt=200,Xt=[["Shortest",0],["10%",.1],["Median",.5],["90%",.9],["99%",.99],["Longest",1]];function Le(e,t){return e[Math.max(0,Math.ceil(Number((t*
e.length).toFixed(9)))-1)]}function ho(e,t,n){let o=K({first:1},e);return t.map(({lat:r})=>Float64Array.from(r.slice(Math.max(o,n?Math.ceil(n[0]):0),n?Math.floor(
n[1])+1:r.length)).sort())}function go(e){let t=e.filter(f=>f.length),n=Math.min(...t.map(f=>f[0])),o=xe(t.map(f=>[...f]),0)??Math.max(...t.map(f=>f[f.length-1])),
r=t.map(f=>2*(Le(f,.75)-Le(f,.25))/Math.cbrt(f.length)).filter(f=>f>0),s=Math.round(Math.min(mo,Math.max(po,r.length?(o-n)/Math.min(...r):0))),i=o>n?(o-n)/s:Math.
max(1e-9,.01*n),g=Array.from({length:s+1},(f,a)=>n+a*i),p=e.map(()=>new Array(s).fill(0));return e.forEach((f,a)=>{for(let l of f)l<=o&&p[a][Math.min(s-1,Math.floor(
(l-n)/i))]++}),{edges:g,shares:p.map((f,a)=>f.map(l=>l/Math.max(1,e[a].length))),beyond:e.map(f=>f.length-X(f,o*(1+1e-12)))}}function xo(e,t){let n=[];for(let o=0;o<=
tt&&e.length;o++){let r=Le(e,o/tt);r<=t*(1+1e-12)&&n.push([r,o/tt])}return n}function Kt(e,t,n){let o=a=>t.querySelector(a),r=o(".td-spread-plot");function s(a,l,u){
let m=ho(a,l,u),h=a.unit==="forward"?"passes":"tokens",x=u?h+" "+q(Math.ceil(Math.max(0,u[0])))+" to "+q(Math.floor(u[1]))+", as zoomed":a.unit==="forward"?"all\
 passes":"all tokens after the first";if(_(o(".td-spread-what"),"The first run of each arm: "+x+"."),!m.some(b=>b.length)){i();return}let w=go(m),c=w.edges[w.edges.
length-1];_(o(".td-spread-said"),g(a,m,w,c,h)),o("table").replaceChildren(...p(a,m,h)),f(a,m,w,c,h)}function i(){_(o(".td-spread-said"),"There are no latencies \
here."),window.Plotly&&Plotly.purge(r),o("table").replaceChildren()}function g(a,l,{beyond:u},m,h){return a.arms.map(({name:x},w)=>{if(!l[w].length)return"Arm "+
x+" has none yet.";let[c,b]=[.25,.75].map(d=>le(1e3*Le(l[w],d))),k=u[w]?", and "+q(u[w])+" longer than the "+le(1e3*m)+" ms that are drawn":"";return"Half of th\
e "+h+" of arm "+x+" took "+c+" to "+b+" ms"+k+"."}).join(" ")}function p(a,l,u){let m=(x,w,c)=>{let b=y("tr",c);return w.forEach((k,d)=>{let v=y(d?x:"th","",k);
v.tagName==="TH"&&(v.scope=d?"col":"row"),b.append(v)}),b},h=m("th",["ms",u[0].toUpperCase()+u.slice(1),"Mean",...Xt.map(([x])=>x)],"");return h.cells[0].scope=
"col",[h,...a.arms.map(({name:x},w)=>{let c=l[w],b=c.reduce((d,v)=>d+v,0)/c.length,k=Xt.map(([,d])=>c.length<(n[d]||1)?"needs "+n[d]:le(1e3*Le(c,d)));return m("\
td",["Arm "+x,q(c.length),...c.length?[le(1e3*b),...k]:[]],"arm-"+x.toLowerCase())})]}function f(a,l,{edges:u,shares:m},h,x){let w=V("--body-text-color"),c=V("-\
-border-color-primary"),b=u.map(N=>1e3*N),k=a.arms.flatMap(({name:N},A)=>{let M={width:1.6,...ie(a.arms[A],A)},E=xo(l[A],h),C={type:"scatter",mode:"lines",name:Y(
N),line:M,hoverinfo:"skip"};return[{...C,x:b,y:[...m[A].map(R=>100*R),0],line:{...M,shape:"hv"},fill:"tozeroy",fillcolor:M.color+"30"},{...C,x:E.map(R=>1e3*R[0]),
y:E.map(R=>100*R[1]),line:{...M,shape:"hv"},xaxis:"x2",yaxis:"y2",showlegend:!1}]}),d=.02*(b[b.length-1]-b[0]),v=[b[0]-d,b[b.length-1]+d],T={gridcolor:c,linecolor:c,
zeroline:!1,nticks:6,fixedrange:!0},L=N=>({text:N,standoff:4});ue().then(()=>Plotly.react(r,k,{paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{
color:w,size:11,family:V("--font")||"sans-serif"},height:260,margin:{t:24,b:38,l:46,r:8},hovermode:!1,legend:{orientation:"h",x:1,xanchor:"right",y:1,yanchor:"b\
ottom"},xaxis:{...T,range:v,domain:[0,.47],title:L("latency, ms")},yaxis:{...T,title:L("% of "+x),rangemode:"tozero"},xaxis2:{...T,domain:[.55,1],anchor:"y2",matches:"\
x",title:L("latency, ms")},yaxis2:{...T,anchor:"x2",title:L("cumulative %"),range:[0,101]}},{staticPlot:!0,responsive:!0,showSendToCloud:!1}))}return{show:s,openOn(a){
e.addEventListener("click",()=>{a()&&(t.showModal(),s(...a()))}),t.querySelector(".td-close").addEventListener("click",()=>t.close()),t.addEventListener("click",
l=>{l.target===t&&t.close()})},follow(a){t.open&&a()&&s(...a())}}}var wo=3,ko=8e3;function Wt(e,t,n){let o=60,r=0,s=!1,i=0,g=0,p=0,f=0,a=!1,l=!1;function u(w){return new Promise((c,b)=>{let k=setTimeout(()=>b(new Error("no ans\
wer")),ko);w.then(d=>{clearTimeout(k),c(d)},d=>{clearTimeout(k),b(d)})})}async function m(){let w=f;i++;try{let c="more";for(;c==="more";){let b=await u(e());if(w!==
f)return;l=!0,g&&(g=0,p=0,n("")),c=t(b)}c==="over"&&(a=!1)}catch{if(w!==f||!a)return;g++;let c=Math.min(1e4,250*2**g);p=performance.now()+c,n("The server does n\
ot answer. Retrying in "+se(c/1e3)+"; nothing is lost.")}finally{i--}}async function h(){if(!element.isConnected)return;let w=g||!l||s?1:wo,c=a&&!document.hidden&&
i<w&&performance.now()>=p,b=c&&m();s&&await b,setTimeout(h,Math.max(o,r))}setTimeout(h,0),document.addEventListener("visibilitychange",()=>{!document.hidden&&element.
isConnected&&a&&i===0&&(p=0,m())});function x(){f++,g=0,p=0,l=!1,a=!0,n(""),document.hidden||m()}return{begin:x,stop(){f++,a=!1},every(w,c=!1){o=w,s=c},atLeast(w){
r=w},get running(){return a}}}var Xe=4e3;function nt(e,t,n){let o=X(e.t,n);if(o>=e.t.length)return e.n.length?e.n[e.n.length-1]:0;let r=o?[e.t[o-1],e.n[o-1]]:[t,0];return n<=r[0]?r[1]:Math.floor(
r[1]+(e.n[o]-r[1])*(n-r[0])/(e.t[o]-r[0]))}function yo(e,t){let n=Vt(e.t,t),o=Vt(e.st,t),r={...e};for(let s of qe)r[s]=e[s].slice(0,n);for(let s of["st","sm"])r[s]=
e[s].slice(0,o);return r}function Vt(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<=t?n=r+1:o=r}return n}function Gt(e,t,n,o,r,s){let i=null,g=[],p=0,f=0,
a=!1,l=0;function u(d,v){i=d,g=v,p=Math.max(0,...g.map(L=>L.t.length?L.t[L.t.length-1]:0));let T=p>0&&i.unit!=="forward"&&i.arms.some(L=>L.pace.t.length);e.disabled=
t.disabled=o.disabled=!T,t.max=String(p),T&&(f=p,t.value=String(p),m())}function m(){_(e,a?"❚❚ Pause":"▶ Race");let d=i?i.arms.filter((T,L)=>g[L].t.length&&
f>=g[L].t[g[L].t.length-1]).map(T=>T.name):[],v=f<p&&d.length?", "+d.join(" and ")+" done":"";_(n,p?f.toFixed(p>=100?0:p>=10?1:2)+" of "+se(p)+v:""),t.setAttribute(
"aria-valuetext",se(f))}function h(){f>=p?(r.whole(),s(null,null)):(i.arms.forEach((d,v)=>r.upTo(v,g[v].t.length?nt(d.pace,g[v].t[0],f):0)),s(f,g.map(d=>yo(d,f)))),
m()}function x(d){if(!a||!element.isConnected)return;let v=Math.max(0,d-l);f=Math.min(p,f+v/1e3*Number(o.value)),l=d,f>=p&&(a=!1),t.value=String(f),h(),a&&requestAnimationFrame(
x)}function w(){a=!1,p=0,f=0,i=null,g=[],e.disabled=t.disabled=o.disabled=!0,t.value="0",s(null,null),m()}function c(){e.disabled||(a=!a,a&&(f>=p&&(f=0),l=performance.
now(),requestAnimationFrame(x)),h())}function b(){i&&(a=!1,f=p,t.value=String(f),h())}function k(d){let v=g.flatMap(L=>L.t),T=d>0?Math.min(p,...v.filter(L=>L>f)):
Math.max(0,...v.filter(L=>L<f));a=!1,f=T,t.value=String(f),h()}return e.addEventListener("click",c),t.addEventListener("input",()=>{a=!1,f=Number(t.value),h()}),
t.addEventListener("keydown",d=>{let v={ArrowLeft:-1,ArrowDown:-1,ArrowRight:1,ArrowUp:1}[d.key];v&&(d.preventDefault(),k(v))}),{ready:u,clear:w,toggle:c,whole:b,
step:k,state:()=>({able:!e.disabled,playing:a,at:f<p?f:null,clock:n.textContent})}}var bo=5e3,vo=3e3;function Jt(e){let t=[],n=null,o=[];function r(l,u){if(e.replaceChildren(),o=[],u==="forward"){t=[],e.append(y("p","td-empty","An encoder gene\
rates no text: its forward passes are timed."));return}t=l.map(m=>{let h=y("section","td-text arm-"+m.name.toLowerCase()),x=y("div","td-scroll");x.tabIndex=0,x.
setAttribute("role","region"),x.setAttribute("aria-label","Text of arm "+m.name);let w=y("div","td-body");return w.append(document.createTextNode("")),x.append(
w),h.append(x),e.append(h),{body:w}}),n=y("p","td-text-comparison",""),e.append(n)}function s(l,u){if(!u||!t[l])return;let m=t[l].body.firstChild;m.appendData(u),
m.length>bo&&m.deleteData(0,m.length-vo)}function i(l,u,m){if(!t[l])return;o[l]={text:u,difference:m};let h=t[l].body;if(h.replaceChildren(),m<0){h.append(document.
createTextNode(u));return}let x=y("span","td-divergent"),w=y("mark","td-difference","≠");w.title="The texts differ from here on.",x.append(document.createTextNode(
u.slice(m))),h.append(document.createTextNode(u.slice(0,m)),w,x)}function g(){for(let{body:l}of t){let u=l.parentElement,m=l.querySelector(".td-difference");m&&
(u.scrollTop+=m.getBoundingClientRect().top-u.getBoundingClientRect().top-u.clientHeight/3)}}function p(l,u){if(!t.length)return;let m=l.map(k=>k.text),[h,x]=m,
w=m.length<2?-1:St(h,x);if(m.forEach((k,d)=>{i(d,k,w),t[d].body.closest(".td-text").classList.toggle("td-unwritten",!k)}),g(),m.length<2)return;let c=Math.min(h.
length,x.length),b=w<0&&h.length===x.length;c?b?_(n,"The texts are identical."):w<0?_(n,"The first "+q(c)+" characters are identical; one text is longer."):u?.startsWith(
"The texts differ")?_(n,"Marked ≠: "+u):_(n,"The texts first differ at character "+q(w+1)+", marked ≠. "+(u||"")):_(n,"")}function f(l,u){if(!t[l]||!o[l])return;
let m=o[l].text.slice(0,u),h=document.createTextNode(m.slice(-Xe));t[l].body.replaceChildren(h)}function a(){t.forEach((l,u)=>{o[u]&&i(u,o[u].text,o[u].difference)}),
g()}return{build:r,append:s,finish:p,upTo:f,whole:a}}function Yt(e){let t=null,n=[],o=0;function r(a){e.replaceChildren(),n=a.map(l=>{let u=y("div","td-phases arm-"+l.name.toLowerCase()),m=y("span","td-steps"),h=y(
"i","td-phase-bar");return u.append(y("span","td-arm",l.name),y("b","td-label",l.label),m,h),e.append(u),{steps:m,bar:h,chips:new Map}})}function s(a,l,u){let m=a.
state==="begin"||a.state==="step",h=a.title+" "+se(m?Math.max(a.seconds,l-a.begin_s):a.seconds);return a.name==="run"&&!(t.quality&&!u)?h+=", "+q(u)+" of "+q(t.
max_new_tokens)+(t.unit==="forward"?" passes":" tokens"):m&&a.fraction!==null&&(h+=", "+Math.round(100*a.fraction)+"%"),a.wait&&(h+=", "+a.wait),m&&a.note&&(h+=
" ("+a.note+")"),a.state==="broken"?"✕ "+h:h}function i(a,l){return a.expected_s?Math.min(.95,(l-a.begin_s)/a.expected_s):0}function g(a,l){if(!t)return;let u=t.
now_s+(performance.now()-o)/1e3;t.arms.forEach((m,h)=>{let x=n[h];if(!m.phases.length){_(x.steps,l?"did not run":h?"waiting for arm "+t.arms[h-1].name:"waiting");
return}x.chips.size||x.steps.replaceChildren();for(let k of m.phases){let d=x.chips.get(k.name);d||(d=y("span",""),x.chips.set(k.name,d),x.steps.append(d));let v="\
td-step "+k.state;d.className!==v&&(d.className=v),_(d,s(k,u,a[h].t.length))}let w=m.phases[m.phases.length-1],c=w.name==="run"?a[h].t.length/t.max_new_tokens:w.
fraction||i(w,u),b=m.state==="working"?(100*Math.min(1,c)).toFixed(1)+"%":"0";x.bar.style.width!==b&&(x.bar.style.width=b)})}function p(a){t=a,o=performance.now()}
function f(){t=null,n=[],e.replaceChildren()}return{build:r,take:p,tick:g,clear:f}}function Qt(e,t,n,o,r,s){function i(a,l){_(e,p(a,l)),e.classList.toggle("td-underway",!a.verdict.sentence),_(t,a.verdict.basis),_(o,a.verdict.unasked),s&&_(s,a.
verdict.pays),g(a.verdict),n.hidden=!a.digest,a.digest&&(n.className="td-digest "+a.digest.status,_(n,a.digest.line))}function g({gate:a,gate_run:l}){!r||r.textContent===
(a||"")||(r.replaceChildren(),r.title=a||"",a&&(l?r.append(Object.assign(y("a","td-gate-line",a),{href:"?"+new URLSearchParams({run:l})})):r.append(y("span","td\
-gate-line",a))))}function p(a,l){if(a.verdict.sentence)return a.verdict.sentence;if(l==="queued")return"Waiting for the runs before this one.";if(l!=="running")
return l==="done"?"The run is complete.":l==="cancelled"?"Stopped before both arms were complete: no verdict.":"";let u=a.arms.find(x=>x.state==="working");if(!u)
return"Starting.";let m=a.arms.filter(x=>x.state==="waiting").map(x=>x.name),h=u.phases.at(-1);return"Running arm "+u.name+(h?": "+h.title:"")+(m.length?"; then\
 arm "+m.join(" and ")+".":".")}function f(){_(e,""),_(t,""),_(o,""),s&&_(s,""),g({gate:"",gate_run:""}),n.hidden=!0}return{take:i,clear:f}}var Zt=200,ot=6,$t=8;function Mo(e,t){return t.find(({titles:n})=>n.some(o=>e===o||e.startsWith(o+",")))?.meaning??""}var ee=null,te=null,_e=0;function ce(e,t,n){
let o=Mo(n,settings.terms);if(!o)return y(e,t,n);let r=y(e,t),s=y("button","td-term",n);s.type="button";let i=()=>Lo(s,o),g=()=>{_e=setTimeout(Te,Zt)};return s.
addEventListener("pointerenter",p=>{p.pointerType==="mouse"&&i()}),s.addEventListener("pointerleave",p=>{p.pointerType==="mouse"&&g()}),s.addEventListener("focu\
s",i),s.addEventListener("blur",g),s.addEventListener("click",i),r.append(s),r}function Lo(e,t){ee??=To(),clearTimeout(_e),te&&te!==e&&Te(),te=e,ee.textContent=
t,e.setAttribute("aria-describedby",ee.id),ee.matches(":popover-open")||ee.showPopover(),en()}function en(){if(!te)return;let e=te.getBoundingClientRect(),{width:t,
height:n}=ee.getBoundingClientRect(),o=e.bottom+ot+n<=window.innerHeight;ee.style.left=Math.max($t,Math.min(e.left,window.innerWidth-t-$t))+"px",ee.style.top=(o?
e.bottom+ot:e.top-ot-n)+"px"}function Te(){clearTimeout(_e),te?.removeAttribute("aria-describedby"),te=null,ee?.matches(":popover-open")&&ee.hidePopover()}function To(){
let e=y("div","td-meaning");return e.id="td-meaning-"+(element.id||element.closest("[id]").id),e.popover="manual",e.setAttribute("role","tooltip"),e.addEventListener(
"pointerenter",()=>clearTimeout(_e)),e.addEventListener("pointerleave",()=>{_e=setTimeout(Te,Zt)}),element.append(e),document.addEventListener("keydown",t=>{t.key!==
"Escape"||!te||(t.preventDefault(),Te())},!0),document.addEventListener("pointerdown",t=>{let n=t.target;te&&!te.contains(n)&&!e.contains(n)&&Te()}),window.addEventListener(
"scroll",en,{passive:!0,capture:!0}),e}function tn(e,t){let n=y("div","td-said"),o=y("div","td-four"),r=y("div","td-advice"),s=y("p","td-lead"),i=y("p","td-number"),g=y("p","td-tail"),p=y("div","td-s\
cale"),f=y("p","td-badge-said"),a=y("p","td-reason"),l=y("button","td-next");l.type="button";let u=y("div","td-ratio");u.append(i,p),n.append(s,u,g),r.append(f,
a,l),e.append(n,o,r);let m=null;l.addEventListener("click",()=>{t&&m?.next&&t(m.next)});function h(c){m=c,e.hidden=!c,c&&(e.className="td-answer "+c.tone+(c.decided?
" td-decided":""),_(s,c.lead),_(i,c.figure),_(g,c.tail),w(c),o.replaceChildren(...c.tiles.map(x)),_(f,c.recommendation),_(a,c.reason),l.hidden=!t||!c.next,c.next&&
_(l,c.next.label))}function x(c){let b=y("div","td-one"),k=y("p","td-values");return k.append(y("b",c.b?"arm-a":"",c.a)),c.b&&k.append(y("span",""," → "),y("b",
"arm-b",c.b)),c.unit&&k.append(y("small",""," "+c.unit)),b.append(ce("h3","",c.title),k,y("p","td-one-note",c.note)),b}function w(c){if(p.replaceChildren(y("p",
"td-ends",c.ends||(c.pairs.length===1?"one pair, no interval yet":""))),c.low===null||c.high===null)return;let b=_o(c),k=y("div","td-axis-line"),d=L=>100*(Math.
log(L)-b.from)/(b.to-b.from)+"%",v=y("i","td-band");v.style.left=d(Math.max(c.low,Math.exp(b.from))),v.style.right="calc(100% - "+d(Math.min(c.high,Math.exp(b.to)))+
")",k.append(v,...c.pairs.map(L=>Object.assign(y("i","td-pair"),{style:"left:"+d(L)}))),b.from<0&&b.to>0&&k.append(Object.assign(y("i","td-even"),{style:"left:"+
d(1),title:"as fast"})),k.append(Object.assign(y("i","td-middle"),{style:"left:"+d(c.ratio)}));let T=y("div","td-ticks");for(let L of[Math.exp(b.from),Math.exp(
b.to)])T.append(y("span","",So(L)));p.append(k,T)}return{take:h,clear:()=>h(null)}}function _o(e){let t=e.pairs.map(Math.log),n=Math.log(e.ratio),o=Math.max(.01,
Math.max(...t)-n,n-Math.min(...t)),r=Math.min(4*o,Math.max(Math.log(e.high)-n,n-Math.log(e.low))),s=1.15*Math.max(o,r);return{from:n-s,to:n+s}}function So(e){return(e>=
10?e.toFixed(1):e.toFixed(2))+"×"}var nn=[["title","Text",""],["positions","Positions","tokens that both arms were asked to predict"],["a","Perplexity A",""],["b","Perplexity B",""],["ratio","B \
/ A","perplexity of B / perplexity of A"],["kl","KL, nats","mean divergence of B from A"],["largest","Largest KL","at a single position"],["agreement","Agreemen\
t","positions at which both find the same token most likely"],["divergence","First divergence","first position at which they do not"]];function on(e){let t="";function n(s){
let i=JSON.stringify(s);if(i===t||(t=i,e.hidden=!s,e.replaceChildren(),!s)||(e.append(y("h3","","Quality on given texts")),e.append(o(s.rows)),s.progress&&e.append(
y("p","td-quality-progress",s.progress)),s.note&&e.append(y("p","",s.note)),!s.compared))return;let g=y("p",""),p=y("a","td-compared","The comparison of these a\
rms");p.href="?"+new URLSearchParams({run:s.compared}),g.append(p,document.createTextNode(" names this cost beside its gain.")),e.append(g)}function o(s){let i=y(
"div","td-quality-rows"),g=y("table",""),p=y("tr",""),f=y("thead",""),a=y("tbody","");i.tabIndex=0,i.setAttribute("role","region"),i.setAttribute("aria-label","\
Quality by text");for(let[,l,u]of nn){let m=ce("th","",l);m.scope="col",m.querySelector("button")||(m.title=u),p.append(m)}f.append(p);for(let l of s){let u=y("\
tr",l===s[s.length-1]?"td-all-texts":""),m=y("th","",l.title);m.scope="row",u.append(m,...nn.slice(1).map(([h])=>y("td","",l[h]))),a.append(u)}return g.append(f,
a),i.append(g),i}function r(){t="",e.hidden=!0,e.replaceChildren()}return{take:n,clear:r}}function rn(e){let t=new Map,n="";function o(g,p){let f=[...new Map(g.flatMap(l=>l.tiles.map(u=>[u.key,u.label])))],a=JSON.stringify([f,g.map(l=>l.name)]);n!==a&&
s(f,g,a);for(let[l]of f){let u=g.map(d=>d.tiles.find(v=>v.key===l)),{card:m,values:h,unit:x,foot:w}=t.get(l),c=[...new Set(u.map(d=>d&&d.unit).filter(Boolean))],
b=c.length===1;h.forEach((d,v)=>{let T=u[v],L=T&&T.value!=="n/a";_(d.number,L?T.value:"–"),_(d.unit,L&&!b&&T.unit?" "+T.unit:"")}),_(x,b?c[0]:"");let k=p[l];_(
w,k?k.text:r(u.map(d=>d?d.note:""))),w.className="td-foot"+(k&&k.better?" better":""),m.title=u.map((d,v)=>d&&d.note?g[v].name+": "+d.value+" "+d.unit+", "+d.note:
"").filter(Boolean).join(`
`)}}function r(g){let[p,...f]=new Set(g.filter(Boolean)),a=g.every(Boolean);return p&&!f.length&&(a||!/\d/.test(p))?p:""}function s(g,p,f){e.replaceChildren(),t=
new Map,n=f;for(let[a,l]of g){let u=y("div","td-tile"),m=y("p","td-figure"),h=y("span","td-unit",""),x=y("small","td-foot","");u.dataset.key=a;let w=p.map(c=>{let b=y(
"b","arm-"+c.name.toLowerCase()),k=y("span","",""),d=y("small","","");return b.append(k,d),m.append(y("span","td-hidden","Arm "+c.name+": "),b),{number:k,unit:d}});
m.append(h),u.append(ce("h3","",l),m,x),e.append(u),t.set(a,{card:u,values:w,unit:h,foot:x})}}function i(){for(let{card:g,values:p,unit:f,foot:a}of t.values())g.
title="",p.forEach(l=>{_(l.number,"–"),_(l.unit,"")}),_(f,""),_(a,"")}return{take:o,clear:i}}function sn(e){let t="";function n(s){let i=s.filter(u=>u.details.length),g=JSON.stringify(i.map(u=>[u.name,u.details]));if(g===t)return;if(t=g,e.replaceChildren(),
!i.length){e.append(y("p","td-empty","Percentiles, intervals and readings of the machine appear here once an arm has finished."));return}let p=y("table",""),f=y(
"thead",""),a=y("tbody","");f.append(Be("Figure",i));let l=new Map(i.flatMap(u=>u.details.map(m=>[m.key,m.label])));for(let[u,m]of l){let h=y("tr",""),x=y("th",
"",m);x.scope="row",h.dataset.key=u,h.append(x,...i.map(w=>o(w.details.find(c=>c.key===u)))),a.append(h)}p.append(f,a),e.append(p)}function o(s){let i=y("td","");
return s&&(i.append(y("b","",s.value),document.createTextNode(s.unit?" "+s.unit:"")),s.note&&i.append(y("small","",s.note))),i}function r(){t="",e.replaceChildren()}
return{take:n,clear:r}}var Eo={verified:"✓ verified",partial:"◐ partial",no_effect:"○ no effect",fallback:"▲ fallback",failed:"✕ failed",unchecked:"◌ unchecked",off:"off",
not_applicable:"not applicable"};function an(e){let t="",n=!1;function o(p,f){let a=JSON.stringify([p.map(b=>b.ledger),f]);if(a===t)return;if(t=a,e.replaceChildren(),
!f){e.append(y("p","td-empty","Proof that each choice took effect appears here once an arm has finished."));return}let l=y("table",""),u=y("tr",""),m=y("thead",
""),h=y("tbody",""),x=ce("caption","","Ledger");x.append(y("small","",f.line)),l.append(x);for(let b of["Axis","Arm","Requested","Planned","Effective","Status",
"Proof"]){let k=ce("th","",b);k.scope="col",k.role="columnheader",u.append(k)}m.append(u);for(let[b,k]of[[m,"rowgroup"],[h,"rowgroup"],[u,"row"]])b.role=k;let w=[
...new Set(p.flatMap(b=>b.ledger.map(k=>k.axis)))];for(let b of w){let k=s(p,b);k.forEach((d,v)=>{let T=i(d,f.titles[b]||b,v?0:k.length);T.classList.toggle("td-\
quiet",!f.shown.includes(b)),h.append(T)})}let c=y("button","td-all","");c.type="button",c.addEventListener("click",()=>{n=!n,r(l,c,w.length,f)}),l.append(m,h),
e.append(l,c),r(l,c,w.length,f)}function r(p,f,a,l){let u=!n&&!l.shown.length;p.classList.toggle("td-folded",!n),p.classList.toggle("td-none",u),p.role=u?"prese\
ntation":"table",p.querySelector("caption").role=u?null:"caption",f.hidden=l.shown.length===a,_(f,n?"Only what differs or is not verified":"All "+a+" axes with \
their proof"),f.setAttribute("aria-expanded",String(n))}function s(p,f){let a=new Map;for(let l of p)for(let u of l.ledger.filter(m=>m.axis===f)){let m=JSON.stringify(
u);a.has(m)?a.get(m).arms.push(l.name):a.set(m,{...u,arms:[l.name]})}return[...a.values()]}function i(p,f,a){let l=y("tr",p.status);if(l.role="row",a){let h=y("\
th","",f);h.scope="rowgroup",h.rowSpan=a,h.role="rowheader",l.append(h)}let u=y("td","td-who");for(let h of p.arms){let x=y("span","arm-"+h.toLowerCase());x.append(
y("span","td-arm",h)),u.append(x)}l.append(u);for(let h of["requested","planned","effective"]){let x=y("td","td-choice",p[h]);x.dataset.title=h,l.append(x)}l.append(
y("td","td-status",Eo[p.status]||p.status));let m=y("td","td-proof",p.proof);p.reason&&m.append(y("small","",p.reason)),l.append(m);for(let h of l.querySelectorAll(
"td"))h.role="cell";return l}function g(){t="",n=!1,e.replaceChildren()}return{take:o,clear:g}}var ln={ok:"",note:"Note: ",fallback:"▲ Fallback: ",blocked:"✕ Blocked: "};function cn(e,t){let n=t.flatMap(r=>[...r.verdicts.filter(s=>s.level!=="ok").map(
s=>({arm:r.name,level:s.level,text:ln[s.level]+s.reason})),...r.spoilers.map(s=>({arm:r.name,level:"fallback",text:"▲ "+s})),...r.notes.map(s=>({arm:r.name,level:"\
note",text:ln.note+s}))]),o=JSON.stringify(n);e.dataset.shown!==o&&(e.dataset.shown=o,e.replaceChildren(...n.map(r=>{let s=y("li",r.level+" arm-"+r.arm.toLowerCase());
return s.append(y("span","td-arm",r.arm),document.createTextNode(r.text)),s})))}function rt(e,{of:t,title:n,hint:o,whole:r,numbers:s,lacking:i}){let g="";function p(h){let x=h.map(d=>({name:d.name,step:t(d)})).filter(d=>d.step),w=JSON.stringify(
x);if(w===g)return;g=w,e.hidden=!x.length;let c=x.filter(d=>!d.step.missing),b=Math.max(...c.map(d=>d.step.seconds)),k=y("h3","",n);if(c.some(d=>d.step.parts.some(
v=>v.reads_s!==null))&&k.append(y("span","td-part-hint",o)),e.replaceChildren(k,...c.map(d=>a(d,b))),c.length){let d=y("div","td-part-scroll");d.tabIndex=0,d.setAttribute(
"role","region"),d.setAttribute("aria-label",s),d.append(l(c)),e.append(d)}for(let d of x){let v=y("p","arm-"+d.name.toLowerCase());v.append(y("span","td-arm",d.
name),document.createTextNode(d.step.missing?i+d.step.missing+".":f(d.step.said))),e.append(v)}}function f(h){return h[0].toUpperCase()+h.slice(1)+"."}function a({
name:h,step:x},w){let c=y("div","td-part-bar arm-"+h.toLowerCase()),b=y("div","td-part-track");c.setAttribute("aria-hidden","true");for(let k of x.parts){if(!k.
seconds)continue;let d=y("span","td-part-piece td-part "+k.key);if(d.style.width=100*k.seconds/w+"%",d.title=[k.label+" "+k.text,k.reads].filter(Boolean).join("\
, "),k.reads_s!==null){let v=y("i","td-part-need");v.style.width=Math.min(100,100*k.reads_s/k.seconds)+"%",d.append(v)}b.append(d)}return c.append(y("span","td-\
arm",h),b),c}function l(h){let x=y("table",""),w=y("thead",""),c=y("tbody","");w.append(Be("Part",h));let b=[];for(let v of h){let T=0;for(let L of v.step.parts){
let N=b.findIndex(A=>A.key===L.key);N<0?b.splice(T++,0,L):T=N+1}}for(let{key:v,label:T}of b){let L=y("tr",""),N=y("th","");L.dataset.key=v,N.scope="row",N.append(
y("i","td-part-key td-part "+v),document.createTextNode(T)),L.append(N,...h.map(A=>u(A.step.parts.find(M=>M.key===v)))),c.append(L)}let k=y("tr",""),d=y("th","",
r);return d.scope="row",k.append(d,...h.map(v=>y("td","",v.step.text))),c.append(k),x.append(w,c),x}function u(h){let x=y("td","");return h&&(x.append(y("b","",
h.text),document.createTextNode(h.seconds===null?"":" "+Math.round(100*h.share)+"%")),h.reads&&x.append(y("small","",h.reads))),x}function m(){g="",e.hidden=!0,
e.replaceChildren()}return{take:p,clear:m}}function dn(e){let t="",n=null;function o(i){let g=JSON.stringify(i.crossing??null);if(g===t)return;if(t=g,n=i.crossing?i:null,e.hidden=!n,!n){e.replaceChildren();
return}let p=y("h3","","When does waiting pay?");p.append(y("span","td-part-hint","seconds since the imports were done, over "+(i.unit==="forward"?"forward pass\
es":"tokens written")));let f=y("div","td-crossing-plot");f.setAttribute("aria-hidden","true"),e.replaceChildren(p,f),r()}function r(){if(!n)return;let{arms:i,crossing:{
starts_s:g,steps_s:p,tokens:f,label:a}}=n,l=e.querySelector(".td-crossing-plot"),u=V("--body-text-color"),m=V("--border-color-primary"),h=2*f,x=(d,v)=>g[d]+v*p[d],
w=Math.max(...i.map((d,v)=>x(v,h))),c=i.map((d,v)=>({type:"scatter",mode:"lines",name:"Arm "+Y(d.name),line:{width:2,...ie(d,v)},x:[0,h],y:[x(v,0),x(v,h)]})),b=x(
0,f),k={gridcolor:m,linecolor:m,zeroline:!1,nticks:6,fixedrange:!0};c.push({type:"scatter",mode:"markers",x:[f],y:[b],marker:{size:9,color:V("--body-background-\
fill"),line:{width:2,color:u}},showlegend:!1}),ue().then(()=>Plotly.react(l,c,{paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:u,size:11,
family:V("--font")||"sans-serif"},height:220,margin:{t:24,b:38,l:46,r:8},hovermode:!1,legend:{orientation:"h",x:1,xanchor:"right",y:1,yanchor:"bottom"},xaxis:{...k,
range:[0,h],tickformat:",",title:{text:n.unit==="forward"?"forward passes":"tokens",standoff:4}},yaxis:{...k,range:[0,1.05*w],ticksuffix:" s"},annotations:[{x:f,
y:b,text:"<b>"+Y(a)+"</b>",showarrow:!1,yanchor:"top",xanchor:"left",xshift:8,yshift:-6}]},{staticPlot:!0,responsive:!0,showSendToCloud:!1}))}function s(){o({})}
return Ie(r),{take:o,clear:s}}var st=e=>{let t=e.composedPath()[0],n=!e.ctrlKey&&!e.metaKey&&!e.altKey&&!e.isComposing&&!e.defaultPrevented,o=t instanceof HTMLInputElement?!["range","checkbo\
x","radio","button"].includes(t.type):!1;return n&&!o&&!t.closest?.('textarea, select, [contenteditable="true"], [role="combobox"], [role="listbox"]')};var Ao="http://www.w3.org/2000/svg",Co=5,fn=32,Oo=1.12;function un(e,t,n=Co){let o=(t-e)/(n-1),r=10**Math.floor(Math.log10(o)),s=r*[1,2,2.5,5,10].find(g=>g*r>=o*
(1-1e-9)),i=[];for(let g=Math.ceil(e/s-1e-9);g*s<=t*(1+1e-9);g++)i.push(Number((g*s).toPrecision(12)));return i}function Po(e,t,n,o){let r=e.map((p,f)=>f).sort(
(p,f)=>e[p]-e[f]),s=[...e],i=n;for(let p of r)s[p]=Math.max(i,s[p]),i=s[p]+t;let g=o;for(let p of r.reverse())s[p]=Math.min(g,s[p]),g=s[p]-t;return s}function pn(e,t,{
head:n,series:o,ended:r},s){let i=Math.max(0,e.findIndex(A=>A.key===t)),g=e[i],p={head:n,series:o,ended:r,hidden:new Set,axis:"token",zoom:null,ink:"",neutral:""},
f=e.map(A=>De(A,p,null)),{unit:a,scale:l}=f[i],m=Fe(e,{...p,units:f,tops:null}).filter(A=>A.meta?.chart===g.key&&A.meta.arm&&A.meta.curve!=="ranks"&&A.y.length).
map(A=>{let M=n.arms.find(({name:$})=>$===A.meta.arm),E=A.y[A.y.length-1],C=M.tiles.find($=>$.key==="latency"),R=s[M.name]||"",D=R.length>fn?R.slice(0,fn)+"…":
R,J=g.key==="latency"&&C&&C.value!=="n/a"?C.value+" "+C.unit:Number(E.toPrecision(3))+" "+a,Q=[M.name,D===M.name?"":D].filter(Boolean).join(" "),H=A.meta.curve?
"":Q+(A.meta.kind?", "+A.meta.kind+" layers":"")+": "+J;return{arm:M.name,curve:!!A.meta.curve,label:H,x:A.x,y:A.y,color:A.line.color,dash:A.line.dash,width:A.line.
width}}),h=m.filter(A=>!A.curve),[x]=W(g),w=K(x,n),c=g.unit==="ms"?xe(o.map(A=>A[x.column]),w):null,b=h.flatMap(A=>A.y),k=Math.max(0,...b),d=b.length?Math.min(...b):
0,v=c===null?k:c*x.scale*l,T=g.from_zero?0:Math.max(0,Math.min(d,k*(1-g.min_span))-.1*(k-d)),L=ze(g,i,{...p,units:f},"").map(({text:A,y:M})=>({text:A,y:M})),N=n.
unit==="forward"&&g.encoder?.title||g.title||n.memory_label;return{title:N[0].toUpperCase()+N.slice(1)+", "+a,lines:m,bounds:L,low:T,high:v>T?T+Oo*(v-T):T+1,last:Math.
max(1,...h.map(A=>A.x[A.x.length-1]??0)),word:n.unit==="forward"?"forward pass":"token"}}function mn(e,{title:t,lines:n,bounds:o,low:r,high:s,last:i,word:g}){let p=e.
clientWidth,f=e.clientHeight,a=parseFloat(getComputedStyle(e).fontSize);if(e.replaceChildren(),p<8*a||f<8*a||!n.length)return;let l=un(r,s),u=un(0,i,6),m=a*(.8+
.6*Math.max(...l.map(M=>M.toLocaleString("en-US").length))),h=1.4*a,x=2.2*a,w=3*a,c=M=>m+(p-m-h)*M/i,b=M=>x+(f-x-w)*(1-(M-r)/(s-r)),k=we("svg",{width:p,height:f,
viewBox:[0,0,p,f].join(" "),"aria-hidden":"true"}),d="td-slide-"+e.closest("[id]")?.id,v=we("clipPath",{id:d});v.append(we("rect",{x:m,y:x,width:p-m-h,height:f-
x-w})),k.append(v,Se(0,a,t,"start","td-slide-axis"));for(let M of l)k.append(we("line",{x1:m,x2:p-h,y1:b(M),y2:b(M),class:"td-slide-grid"})),k.append(Se(m-.5*a,
b(M)+.35*a,M.toLocaleString("en-US"),"end","td-slide-axis"));for(let M of u)k.append(Se(c(M),f-1.7*a,M.toLocaleString("en-US"),"middle","td-slide-axis"));k.append(
Se((m+p-h)/2,f-.4*a,g,"middle","td-slide-axis"));for(let M of[...n].sort((E,C)=>Number(C.curve)-Number(E.curve))){let E=M.x.map((R,D)=>c(R).toFixed(1)+","+b(M.y[D]).
toFixed(1)).join(" "),C={stroke:M.color,"stroke-width":(M.curve?.08:.1*M.width)*a,"stroke-dasharray":M.dash==="solid"?"none":M.dash};k.append(we("polyline",{points:E,
fill:"none","clip-path":"url(#"+d+")",...C}))}let T=M=>M.y.slice(-Math.ceil(M.y.length/5)),L=[...n.filter(M=>M.label).map(M=>({text:M.label,at:b(Math.min(s,T(M).
reduce((E,C)=>E+C,0)/T(M).length)),className:"td-slide-name arm-"+M.arm.toLowerCase()})),...o.map(({text:M,y:E})=>({text:M,at:b(E),className:"td-slide-axis td-s\
lide-bound"}))].sort((M,E)=>M.at-E.at),N=L.map(({at:M},E)=>M+(E&&E===L.length-1&&M-L[E-1].at<2.4*a?1.5:-.7)*a),A=Po(N,1.7*a,x+a,f-w-.4*a);L.forEach(({text:M,className:E},C)=>k.
append(Se(p-h,A[C],M,"end",E))),e.append(k)}function we(e,t){let n=document.createElementNS(Ao,e);for(let[o,r]of Object.entries(t))n.setAttribute(o,String(r));return n}
function Se(e,t,n,o,r){let s=we("text",{x:e,y:t,"text-anchor":o,class:r});return s.textContent=Y(n),s}var No=500;function hn(e,t,n,o){let r=M=>e.querySelector(".td-slide-"+M),s=r("page"),i=r("chart"),g=r("texts"),p=r("play"),f=r("back"),a=r("on"),l=matchMedia("(\
prefers-reduced-motion: reduce)"),u=!1,m=0,h=0,x=[],w=()=>settings.replays?window.tokendynoStory:null;function c(){e.open||!n()||(u=!1,e.showModal(),o.whole(),k(),
s.focus(),s.requestFullscreen?.().catch(()=>{}))}function b(){document.fullscreenElement===s&&document.exitFullscreen(),o.whole()}function k(){clearTimeout(h),h=
0,m=performance.now();let M=n(),E=w();if(!e.open)return;let C=M?.head.card,R=E?.chart??"latency",D=M?.head.figures??{},J=D[R]?R:"latency",Q=D[J]??{lead:"",figure:"",
tail:""},H=E?.title||M?.head.title||"";e.setAttribute("aria-label",H),_(r("title"),H),_(r("what"),M?[E?M.head.title:"",M.head.note].filter(Boolean).join(", "):"");
for(let $ of["lead","figure","tail"])_(r($),Q[$]);_(r("badge"),J==="latency"&&C&&!E?C.recommendation:""),_(r("claim"),E?"Claimed: "+E.claim:""),_(r("proof"),M?.
head.digest?(M.head.digest.status==="verified"?"✓ ":"")+M.head.digest.line:""),r("proof").className="td-slide-proof "+(M?.head.digest?.status??""),_(r("place"),
E?E.place+1+" of "+E.count:"");for(let[$,Ce]of[[f,E?.before],[a,E?.after]])$.hidden=!Ce,_($.querySelector("span"),Ce?.title??"");e.classList.toggle("td-racing",
u),i.hidden=u,g.hidden=!u,r("curves").hidden=!u,M&&!u&&mn(i,pn(settings.charts,J,M,C?.names??{})),M&&u&&v(M),d()}function d(){let{able:M,playing:E,clock:C}=o.state();
p.hidden=!M,_(p.querySelector("span"),u&&E?"Pause":"Play the race"),_(r("clock"),u?C:"")}function v({head:M,series:E}){x=M.arms.map((C,R)=>{let D=y("section","a\
rm-"+C.name.toLowerCase()),J=y("h3",""),Q=y("div","td-slide-text"),H=C.tiles.find($=>$.key==="rate");return J.append(y("span","td-arm",C.name),document.createTextNode(
" "+(M.card?.names[C.name]??C.label??""))),H&&H.value!=="n/a"&&J.append(y("small","",H.value+" "+H.unit)),Q.tabIndex=0,Q.setAttribute("role","region"),Q.setAttribute(
"aria-label","Text of arm "+C.name),D.append(J,Q),{pane:D,body:Q,whole:E[R].text}}).map(({pane:C,...R},D)=>(D||g.replaceChildren(),g.append(C),R)),g.style.setProperty(
"--arms",String(x.length)),T(o.state().at)}function T(M){let E=n();!E||!u||x.forEach(({body:C,whole:R},D)=>{let{t:J}=E.series[D],{pace:Q}=E.head.arms[D],H=M===null?
R.length:J.length?nt(Q,J[0],M):0;_(C,R.slice(0,H).slice(-Xe)),C.scrollTop=C.scrollHeight})}function L(){if(!o.state().able)return;let M=!u;u=!0,M&&k(),(!M||!l.matches)&&
o.toggle(),d()}function N(M){let E=w(),C=E?.[M];!E||!C||(u=!1,E.open(C.name),s.focus())}function A(M){let E=M.target,C={ArrowLeft:-1,ArrowRight:1}[M.key];if(!(M.
key===" "&&E instanceof HTMLButtonElement&&E!==p)){if(M.key===" ")L();else if(C&&u)o.step(C);else if(["PageUp","ArrowLeft"].includes(M.key))N("before");else if([
"PageDown","ArrowRight"].includes(M.key))N("after");else if(M.key.toLowerCase()==="p"&&st(M))e.close();else return;M.preventDefault()}}return t.addEventListener(
"click",c),p.addEventListener("click",L),r("curves").addEventListener("click",()=>{u=!1,o.whole(),k(),s.focus()}),r("leave").addEventListener("click",()=>e.close()),
f.addEventListener("click",()=>N("before")),a.addEventListener("click",()=>N("after")),e.addEventListener("keydown",A),e.addEventListener("close",b),s.addEventListener(
"fullscreenchange",()=>{document.fullscreenElement!==s&&e.close()}),new ResizeObserver(k).observe(s),document.addEventListener("keydown",M=>{M.key.toLowerCase()!==
"p"||!st(M)||document.querySelector("dialog[open]")||!element.checkVisibility()||element.classList.contains("td-bare")||(M.preventDefault(),c())}),{draw:k,follow(){
e.open&&!u&&!h&&(h=setTimeout(k,Math.max(0,No-(performance.now()-m))))},at(M){return e.open&&(T(M),d()),e.open},get open(){return e.open}}}var Ro="Press Run: both arms write your prompt in turn, until it is decided which is faster. Texts, speed, memory and KV cache appear here as they are written, \
with proof that each choice took effect.",gn=new URLSearchParams(location.search).get("pace"),Io=75,Bo=60,wn=Dt(S(".td-plot"),S(".td-moments"),S(".td-noted"),settings.
charts),Uo={outliers:S(".td-outliers"),axes:S(".td-axis"),whole:S(".td-whole")},qo=zt(S(".td-plot"),S(".td-fresh"),settings.charts),ne=Ht(S(".td-plot"),settings.
charts,Uo,wn,qo),Ge=Jt(S(".td-texts")),Ke=Gt(S(".td-race"),S(".td-scrub"),S(".td-clock"),S(".td-speed"),Ge,(e,t)=>{We.at(e)||(ne.only(t),wn.pointAt(e))}),We=hn(
S(".td-slide"),S(".td-present"),()=>O&&{head:O,series:z,ended:fe},Ke),kn=Kt(S(".td-distribution"),S(".td-spread"),settings.fewest),yn=()=>O&&[O,z,ne.zoom],Ae=Yt(
S(".td-progress")),it=Qt(S(".td-sentence"),S(".td-basis"),S(".td-digest"),S(".td-unasked"),S(".td-gate"),S(".td-pays")),lt=tn(S(".td-answer"),settings.links?Ho:
null),bn=on(S(".td-quality")),vn=rn(S(".td-tiles")),Mn=sn(S(".td-rows")),Ln=an(S(".td-ledger")),Tn=rt(S(".td-parts"),{of:e=>e.step,title:"Where the time of a st\
ep goes",hint:"the line under a part is the time that its bytes need",whole:"Measured",numbers:"Parts of a step as numbers",lacking:"Not traced: "}),_n=rt(S(".t\
d-start"),{of:e=>e.start,title:"From process to first token",whole:"Together",numbers:"Parts of a start as numbers"}),Sn=dn(S(".td-crossing")),z=[],O=null,G="",
ct=-1,En=0,at=0,ke=!1,dt=!1,fe=!1,Ee=!1,Ve=Wt(jo,Fo,e=>_(S(".td-connection"),e));async function jo(){let e=++En,t=G,n=z.length?z.map(Je):[[0,0,0],[0,0,0]];ke&&n.
forEach(s=>{s[2]=0});let o=Ee&&!ke&&!dt?Bo:0,r=JSON.parse(await server.pull({run:t,version:ct,cur:n,wait_ms:o}));return r.seq=e,r}function Fo(e){if(e.error)return wt(
G,e.error),"over";if(e.run!==G||fe)return fe?"over":"wait";if(e.head&&e.seq>at&&(at=e.seq,Do(e)),!O)return"wait";xt(e.status,e.queue),yt(e.trouble),Ve.atLeast(e.
every_ms);let t=!1,n=!1;return e.lanes.forEach((o,r)=>{if(!z[r])return;ke&&o.cfirst===0&&_t(z[r],o);let s=Tt(z[r],o);Ge.append(r,s.added),n=n||s.tokens>0||s.samples>
0,t=t||o.n-o.first>=settings.most}),dt=t,n&&(ne.grow(),kn.follow(yn),We.follow()),window.tokendynoProbe&&window.tokendynoProbe.arrived(z.map(o=>o.t.length)),e.ended?
ke?e.lanes.every(o=>o.cfirst===0)?(zo(e),"over"):"more":(ke=!0,"more"):t?"more":"wait"}function Do(e){let t=!O;O=e.head,ct=e.version,t&&(z=O.arms.map(Mt),Ge.build(
O.arms,O.unit),Ae.build(O.arms),element.classList.toggle("single",O.arms.length===1),_(S(".td-empty-run"),""),me(!1)),_(S(".td-title"),O.title),_(S(".td-note"),
O.note),Ae.take(O),it.take(O,e.status),lt.take(O.card),S(".td-verdict").classList.toggle("td-carded",!!O.card),_(S(".td-sure"),O.card?O.card.confidence:""),settings.
links&&window.tokendynoAddress?.title("compare",O.heading),bn.take(O.quality),element.classList.toggle("td-reads",!!O.quality),vn.take(O.arms,O.differences),Mn.
take(O.arms);let n=O.arms.filter(r=>r.spoilers.length).map(r=>r.name);_(S(".td-interference"),n.length?"▲ Possible interference ("+n.join(" and ")+")":""),et(
S(".td-annotations"),O.arms,O.unit),Ln.take(O.arms,O.digest),Tn.take(O.arms),_n.take(O.arms),Sn.take(O),cn(S(".td-remarks"),O.arms),bt(e.status,O.message)&&me(!O.
arms.some(r=>r.prompt_tokens)),ne.take(O,z),An(e.ended)}function An(e){Ee=!e&&(gn?gn==="quiet":O.quiet&&gt),ne.pace(...Ee?[60,1e3,6e3]:[10,300,1e3]),Ve.every(...Ee?
[Io,!0]:[60,!1])}async function xn(){let e=G;if(!(fe&&!document.hidden&&O.verdict.gate&&!O.verdict.gate_run))return;let n=JSON.parse(await server.pull({run:e,version:-1,
cur:z.map(Je),anew:!0}).catch(()=>"{}"));!n.head||e!==G||!fe||(O.verdict=n.head.verdict,O.card=n.head.card,it.take(O,n.status),lt.take(O.card))}function zo(e){fe=
!0,An(!0),Ae.tick(z,!0),Ge.finish(z,O.texts),ne.end(),Ke.ready(O,z),element.dataset.status=e.status,element.dataset.over=e.run,trigger("finished",{run:e.run,status:e.
status}),We.draw(),settings.replays&&!We.open&&!matchMedia("(prefers-reduced-motion: reduce)").matches&&Ke.toggle()}function Cn(e){if(G=e||"",z=[],O=null,ct=-1,
at=En,ke=!1,dt=!1,fe=!1,kt(G,["interference","sure"]),S(".td-verdict").classList.remove("td-carded"),element.classList.remove("td-reads"),settings.links&&window.
dispatchEvent(new Event("tokendyno-run")),settings.links&&window.tokendynoAddress?.title("compare",""),S(".td-texts").replaceChildren(),et(S(".td-annotations"),
[]),Ke.clear(),Ae.clear(),it.clear(),lt.clear(),bn.clear(),vn.clear(),Mn.clear(),Ln.clear(),Tn.clear(),_n.clear(),Sn.clear(),ne.reset(G),_(S(".td-empty-run"),G||
!settings.links?"":[Ro,settings.first].filter(Boolean).join(" ")),G||me(!0),settings.links&&vt(G),!G){Ve.stop();return}Ve.begin()}function Ho(e){let t=o=>document.
querySelector(o);if(e.action==="run"){t("#run")?.click();return}let n="#code-"+e.arm.toLowerCase();t(n)?.scrollIntoView({block:"start"}),t(n+" button")?.focus({
preventScroll:!0})}function On(){element.isConnected&&(O&&!fe&&!document.hidden&&Ae.tick(z),setTimeout(On,Ee?1e3:100))}kn.openOn(yn);S(".td-csv").addEventListener(
"click",()=>{O&&Ut(Bt(O,z),"tokendyno-"+G+".csv")});S(".td-png").addEventListener("click",()=>{O&&ne.picture("tokendyno-"+G)});Ie(()=>ne.touch());settings.links&&
(window.addEventListener("tokendyno-measured",xn),document.addEventListener("visibilitychange",xn));new ResizeObserver(()=>ne.touch()).observe(element);element.
classList.add("td-live");element.live={get series(){return z},get head(){return O}};watch("value",()=>{(props.value||"")!==G&&Cn(props.value)});me(!0);Cn(props.
value);On();})();
