"use strict";(()=>{var Ce=e=>{new MutationObserver(()=>e()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};function y(e,t,n){let o=document.createElement(e);return t&&(o.className=t),n!==void 0&&(o.textContent=n),o}function Oe(e,t){let n=y("tr","");n.append(y("th","",
e),...t.map(o=>{let r=y("th","arm-"+o.name.toLowerCase());return r.append(y("span","td-arm",o.name)),r}));for(let o of n.querySelectorAll("th"))o.scope="col";return n}
function _(e,t){e.textContent!==t&&(e.textContent=t)}function S(e){return element.querySelector(e)}function W(e){return getComputedStyle(element).getPropertyValue(
e).trim()}function q(e){return e.toLocaleString("en-US")}function oe(e){return e>=100?Math.round(e)+" s":e.toFixed(e>=10?1:2)+" s"}function ct(e){return e>=4*2**
30?{unit:"GiB",scale:1/2**30}:e>=2*2**20?{unit:"MiB",scale:1/2**20}:{unit:"KiB",scale:1/1024}}var On={queued:"Queued",running:"Running",done:"Done",failed:"Failed",cancelled:"Stopped",interrupted:"Interrupted"},dt=/^(localhost|127(\.\d+){3}|\[::1\])$/.test(
location.hostname);function ft(e,t){_(S(".td-status"),On[e]||e),e==="queued"&&t&&_(S(".td-message"),t),element.dataset.status=e}function fe(e){element.classList.
toggle("td-bare",e)}function ut(e,t){for(let n of["status","empty-run"])_(S(".td-"+n),"");_(S(".td-failure"),t),fe(!0),trigger("finished",{run:e,status:"unknown"})}
function pt(e,t){for(let n of["status","over"])delete element.dataset[n];element.dataset.run=e;for(let n of["status","title","note","failure","message","connect\
ion","unkept",...t])_(S(".td-"+n),"");S(".td-remarks").replaceChildren(),delete S(".td-remarks").dataset.shown}function mt(e){_(S(".td-unkept"),e?"▲ "+e:"")}function ht(e,t){
let n=e==="failed"||e==="interrupted";return _(S(".td-failure"),n?t||"The run ended unexpectedly.":""),_(S(".td-message"),n?"":t),n}function Pe(e){return S(e)}function gt(e){
if(S(".td-link").hidden=S(".td-files").hidden=!e,!e)return;let t=new URL(location.href);t.search="?"+new URLSearchParams({run:e}),t.hash="",Pe(".td-permalink").
href=t.href,_(S(".td-permalink"),t.search),Pe(".td-kept").href="?"+new URLSearchParams({view:"history",q:e}),S(".td-kept").hidden=e.startsWith("recorded-");for(let r of[
"dyno","html","json"])Pe(".td-file-"+r).href="files/"+encodeURIComponent(e)+"."+r;S(".td-file-html").hidden=!S(".td-plot");let n=new URL(location.href),o=n.searchParams.
get("view")||window.tokendynoAddress?.page;if(o&&o!=="compare"&&o!=="batching"){window.tokendynoAddress?.note(element.closest("#batch-live")?"batching":"compare",
e);return}n.searchParams.set("run",e);for(let r of["worth","sweep"])n.searchParams.delete(r);n.href!==location.href&&history.replaceState(history.state,"",n.href)}
async function Pn(){let{href:e}=Pe(".td-permalink");try{await navigator.clipboard.writeText(e),_(S(".td-copied"),"Copied")}catch{window.prompt("Copy this link:",
e)}setTimeout(()=>_(S(".td-copied"),""),2e3)}S(".td-copy").addEventListener("click",Pn);var Ne=["t","lat","kvs","kvf"];function xt(){return{t:[],lat:[],kvs:[],kvf:[],st:[],sm:[],text:"",chars:0}}function Ke(e){return[e.t.length,e.st.length,e.chars]}
function wt(e){return Object.fromEntries([...Ne,"st","sm"].map(t=>[t,e[t].length]))}function kt(e,t){let n={tokens:0,samples:0,added:""},o=e.t.length;if(t.first<=
o&&t.n>o){for(let s of Ne){let i=e[s],g=t[s];for(let h=o-t.first;h<g.length;h++)i.push(g[h])}n.tokens=t.n-o}let r=e.st.length;if(t.sfirst<=r&&t.sn>r){for(let s=r-
t.sfirst;s<t.st.length;s++)e.st.push(t.st[s]),e.sm.push(t.sm[s]);n.samples=t.sn-r}if(t.cfirst<=e.chars&&t.cn>e.chars){let s=e.chars-t.cfirst;n.added=s?Array.from(
t.text).slice(s).join(""):t.text,e.text+=n.added,e.chars=t.cn}return n}function yt(e,t){e.text=t.text,e.chars=t.cn}function bt(e,t){let n=Math.min(e.length,t.length);
for(let o=0;o<n;o++)if(e.charCodeAt(o)!==t.charCodeAt(o))return o;return-1}function K(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<t?n=r+1:o=r}return n}function vt(e,t,n,o){let r=Math.max(0,n-t);if(r<=o)return Array.from({length:r},
(i,g)=>t+g);let s=2;for(;s*(o/2-2)<r;)s*=2;for(;;){let i=Nn(e,t,n,s);if(i.length<=o)return i;s*=2}}function Nn(e,t,n,o){let r=[t];for(let s=t-t%o;s<n;s+=o){let i=Math.
max(s,t),g=Math.min(s+o,n),h=[];for(let f of e){let a=Math.min(g,f.length);if(i>=a)continue;let l=i,u=i;for(let m=i+1;m<a;m++)f[m]<f[l]?l=m:f[m]>f[u]&&(u=m);h.push(
l,u)}h.sort((f,a)=>f-a);for(let f of h)f>r[r.length-1]&&r.push(f)}return r[r.length-1]!==n-1&&r.push(n-1),r}function re(e,t,n){return e.at==="sample"?t==="second"?o=>n.st[o]:o=>pe(n.t,n.st[o]):t==="second"?o=>n.t[o]:o=>o}function Re(e,t,n,[o,r]){if(e.at==="sample"){let[
s,i]=t==="second"?[o,r]:[ue(n.t,o),ue(n.t,r)];return[K(n.st,s),K(n.st,i)]}return t==="second"?[K(n.t,o),K(n.t,r)]:[Math.floor(o),Math.ceil(r)]}function Xe([e,t],n,o){
let r=o.filter(i=>i.t.length);if(!r.length)return null;let s=r.map(({t:i})=>n==="second"?[ue(i,e),ue(i,t)]:[pe(i,e),pe(i,t)]);return[Math.min(...s.map(i=>i[0])),
Math.max(...s.map(i=>i[1]))]}function Mt(e,{t},n){return!t.length||n>t[t.length-1]?null:e==="second"?n:n<t[0]?null:K(t,n)}function ue(e,t){if(!e.length)return 0;
let n=e.length-1,o=Math.min(n,Math.max(0,t)),r=Math.floor(o);return r===n?e[n]:e[r]+(o-r)*(e[r+1]-e[r])}function pe(e,t){let n=K(e,t);return n===0?0:n>=e.length?
e.length-1:n-1+(t-e[n-1])/(e[n]-e[n-1])}var Rn=.98,In=2,Bn=1.5,Un=20;function me(e,t){let n=Float64Array.from(e.flatMap(s=>s.slice(t))).sort();if(n.length<Un)return null;
let o=n[Math.floor(Rn*(n.length-1))];return n[n.length-1]>In*o?Bn*o:null}var Lt=[{color:"#4269d0",dash:"solid"},{color:"#ff725c",dash:"5px,2.5px"},{color:"#3ca951",dash:"10px,3px"},{color:"#a463f2",dash:"9px,3px,2px,3px"},{color:"#9c\
6b4e",dash:"4px,2px,1px,2px,1px,2px"}];function se(e,t){return Lt[(e.line??t)%Lt.length]}var Tt="1px,3px",qn=400;function Ie(e,t){return e.flatMap((n,o)=>{let r={
xaxis:"x"+F(o),yaxis:"y"+F(o),type:"scatter",mode:"lines"};if(!t.head)return[{...r,x:[0,1],y:[0,1],line:{width:0},hoverinfo:"skip",showlegend:!1}];let s=t.part?
{...t,series:t.part}:t,i=ye(n,t),g=Fn(n,o,r,i,s);return n.annotations&&g.push(...St(n,r,s)),t.tops&&t.tops[o]!==null&&g.push(...Hn(n,o,r,s)),g.push(Xn(n,o,r,t)),
g.concat(Vn(n,o,r,i,t))})}function F(e){return e?e+1:""}function Y(e){return e.replace(/[<>&]/g,"")}function X(e,t){return t.unit==="forward"?0:e.first}function V(e){
return e.lines.filter(t=>!t.curve)}function Ve(e,t,{head:n,series:o,axis:r,zoom:s}){let i=X(e[0],n),g=t.flatMap(a=>e.map(l=>o[a][l.column])),h=i,f=Math.max(0,...g.
map(a=>a.length));if(s){let[a,l]=Re(e[0],r,o[t[0]],s);h=Math.max(h,a-1),f=Math.min(f,l+2)}return vt(g,h,f,qn)}function We(e,t,{head:n,series:o}){return e.curve?
n.arms[t][e.curve]:o[t]}function _t(e,t){let n=0;for(let o of e.lines)t.series.forEach((r,s)=>{let i=We(o,s,t);if(i)for(let g of i[o.column])g>n&&(n=g)});return n}
function jn(e,{series:t}){let n=1/0;for(let o of V(e))for(let r of t)for(let s of r[o.column])s<n&&(n=s);return n<1/0?n:0}function Be(e,t,n){return e.unit!=="by\
tes"?{unit:e.unit,scale:1}:n||ct(_t(e,t))}function ye(e,t){let n=o=>t.series.some((r,s)=>{let i=We(o,s,t),g=i&&i[o.column];return g&&g.length&&g[g.length-1]>0});
return[...new Set(e.lines.filter(o=>o.kind&&n(o)).map(o=>o.kind))]}function Fn(e,t,n,o,r){let{head:s,series:i,hidden:g,axis:h,ended:f}=r,{scale:a}=r.units[t],l=[],
u=V(e),m=i.map((c,b)=>b),x=u[0].at==="token"&&h==="token"?m.map(()=>Ve(u,m,r)):m.map(c=>Ve(u,[c],r)),w=(c,b,k,d)=>{let v=s.arms[b].name,T=se(s.arms[b],b);l.push(
{...n,x:k,y:d,name:Y([v,c.kind,c.label].filter(Boolean).join(" ")),showlegend:!1,hoverinfo:"skip",visible:![v,c.kind,c.label].some(L=>L&&g.has(L)),meta:{chart:e.
key,arm:v,kind:c.kind,curve:c.curve},line:{width:c.width,color:T.color,dash:c.curve?Tt:T.dash},opacity:c.curve?.9:1})};for(let c of e.lines)for(let b of m){if(c.
kind&&!o.includes(c.kind))continue;let k=We(c,b,r),d=c.scale*a;if(!k)continue;let v=k[c.column];if(c.curve&&c.at==="sample"){let L=h==="second"?k.x:k.x.map(N=>N===
null?null:pe(i[b].t,N));w(c,b,L,v.map(N=>N===null?null:N*d));continue}if(c.curve){let L=Je(c,s.arms[b]),{t:N}=i[b];if(h==="token"){let M=f?Math.max(...i.map(C=>C.
t.length))-1+L:1/0,E=zn(k.x,M);w(c,b,E.map(C=>C-L),E.map(C=>ke(k.x,v,C)*d));continue}let A=Ve(Dn,[b],r).filter(M=>M+L>=k.x[0]);w(c,b,A.map(M=>N[M]),A.map(M=>ke(
k.x,v,M+L)*d));continue}let T=x[b].filter(L=>L<v.length);w(c,b,T.map(re(c,h,k)),T.map(L=>v[L]*d))}return l}var Dn=[{at:"token",column:"lat",first:0,scale:1,kind:"",
width:1,curve:"",label:""}];function Je(e,t){return e.at==="length"?t.prompt_tokens:0}function zn(e,t){let n=e.filter(o=>o<=t);return n.length&&n.length<e.length&&
n[n.length-1]<t?[...n,t]:n}function ke(e,t,n){let o=K(e,n);return o===0||o>=e.length?t[o?e.length-1:0]:t[o-1]+(t[o]-t[o-1])*(n-e[o-1])/(e[o]-e[o-1])}function Hn(e,t,n,o){
let{head:r,series:s,hidden:i,axis:g,tops:h}=o,{unit:f,scale:a}=o.units[t],[l]=V(e);return r.arms.map((u,m)=>{let p=s[m][l.column],x=l.scale*a,w=[];for(let c=X(l,
r);c<p.length;c++)p[c]*x>h[t]&&w.push(c);return{...n,mode:"markers",x:w.map(re(l,g,s[m])),y:w.map(()=>.985*h[t]),showlegend:!1,visible:!i.has(u.name),cliponaxis:!1,
marker:{symbol:"triangle-up"+(m%2?"-open":""),size:7,color:se(r.arms[m],m).color},hoverinfo:"skip",text:w.map(c=>(p[c]*x).toPrecision(3)+" "+f),meta:{chart:e.key,
outliers:u.name}}})}function Ue(e,t,{head:n,series:o,ended:r,axis:s,zoom:i,units:g},h){let f=e.lines.find(k=>k.curve==="floor"),a=n.arms.map((k,d)=>[k,o[d]]),l=f?
a.filter(([{floor:k}])=>k&&k[f.column].length):[];if(!l.length)return[];let{unit:u,scale:m}=g[t],p=l.map(([{floor:k},{t:d}])=>{let v=i?i[1]:r&&s==="token"?Math.
max(...o.map(L=>L.t.length))-1:1/0,T=s==="second"?pe(d,v):v;return ke(k.x,k[f.column],T)*f.scale*m}),x=p.map(k=>Number(k.toPrecision(3))),c=Math.max(...p)<1.1*Math.
min(...p)?x[0]:l.map(([k],d)=>Y(k.name)+" "+x[d]).join(", "),b=l.filter(([{floor:k}])=>k.exchanges).map(([{name:k,floor:d}])=>", exchanges of "+Y(k)+" "+d.exchanges).
join("");return[{text:"roofline bound "+c+" "+u+b,showarrow:!1,xref:"x"+F(t)+" domain",yref:"y"+F(t),x:1,y:Math.max(...p),xanchor:"right",yanchor:"bottom",font:{
size:10,color:h}}]}var Kn=.25;function Xn(e,t,n,o){let{head:r,series:s,ended:i,axis:g}=o,{scale:h}=o.units[t],f=[0,Math.max(1,i?Math.max(...s.map(x=>x.t.length)):
r.max_new_tokens)];if(g==="second"){let x=Math.max(0,...s.flatMap(({t:c,st:b})=>[c,b].filter(k=>k.length).map(k=>k[k.length-1]))),w=10**Math.floor(Math.log10(Math.
max(1,x)));f=[0,i?x:Math.ceil((x+w/10)/w)*w]}let a=e.unit==="bytes"?_t(e,o)*h:0,l=e.min_span*a,u=e.from_zero?0:jn(e,o)*h,m=i?a:a+Kn*(a-u),p=[u-l/4,Math.max(m,u+
3*l/4)];return{...n,x:f,y:p,line:{width:0},hoverinfo:"skip",showlegend:!1,meta:{chart:e.key,extent:!0}}}function Vn(e,t,n,o,{head:r,hidden:s,neutral:i}){let g=(l,u,m)=>({
...n,x:[null],y:[null],name:Y(l),line:u,legend:m,showlegend:!0,hoverinfo:"skip",visible:s.has(l)?"legendonly":!0,meta:{legend:l}}),h="legend"+F(t),f=t?[]:r.arms.
map((l,u)=>g(l.name,{width:2,...se(r.arms[u],u)},h));for(let l of o){let{width:u}=V(e).find(m=>m.kind===l);f.push(g(l,{width:u,color:i},h))}let a=l=>l.curve&&(!l.
kind||o.includes(l.kind))&&r.arms.some(u=>u[l.curve]);for(let l of new Set(e.lines.filter(a).map(u=>u.label)))f.push(g(l,{width:1.2,color:i,dash:Tt},h));return f}var At={compile:["diamond","◆"],recompile:["diamond","◆"],graph_skip:["x","✕"],window:["triangle-down","▼"],cache:["square","■"],gc:["circle","●"],throttle:[
"star","★"],foreign:["cross","✚"]},Et=3;function St(e,t,{head:n,series:o,hidden:r,axis:s,ink:i}){let g=V(e)[0],h=X(g,n),f=[];return n.arms.forEach((a,l)=>{let u=o[l][g.
column],m=new Map(a.marks.filter(({token:w})=>w>=h&&w<u.length).reverse().map(w=>[w.token,w.kind]));if(!m.size)return;let p=[...m.keys()].sort((w,c)=>w-c),x=p.map(
w=>At[m.get(w)][0]);f.push({...t,mode:"markers",x:p.map(re(g,s,o[l])),y:p.map(w=>u[w]*g.scale),marker:{symbol:x.map(w=>w+(l%2?"-open":"")),size:9,color:i,line:{
width:1.2,color:i}},hoverinfo:"skip",showlegend:!1,visible:!r.has(a.name),meta:{chart:e.key,annotations:a.name}})}),f}function Ge(e,t,n){let o=JSON.stringify(t.
map(s=>s.marks));if(e.dataset.shown===o)return;e.dataset.shown=o;let r=s=>(n==="forward"?"pass ":"token ")+q(s.token)+": "+s.text;e.title=t.flatMap(s=>s.marks.map(
i=>s.name+" "+r(i))).join(`
`),e.replaceChildren(...t.filter(s=>s.marks.length).map(s=>{let i=y("span","td-annotation arm-"+s.name.toLowerCase());i.append(y("span","td-arm",s.name));let g=s.
marks.slice(0,Et).map(f=>At[f.kind][1]+" "+r(f)),h=s.marks.length-Et;return i.append(document.createTextNode(g.join(", ")+(h>0?" and "+q(h)+" more":""))),i}))}var Wn=["arm","series","index","seconds","latency_s","kv_sliding_bytes","kv_full_bytes","memory_bytes"];function Ct(e,t){let n=[Wn.join(",")],o=e.unit==="forwar\
d"?"pass":"token";return e.arms.forEach(({name:r},s)=>{let{t:i,lat:g,kvs:h,kvf:f,st:a,sm:l}=t[s];i.forEach((u,m)=>n.push([r,o,m,u,g[m],h[m],f[m],""].join(","))),
a.forEach((u,m)=>n.push([r,"sample",m,u,"","","",l[m]].join(",")))}),n.join(`
`)+`
`}function Ot(e,t){let n=document.createElement("a");n.href=URL.createObjectURL(new Blob([e],{type:"text/csv"})),n.download=t,n.click(),setTimeout(()=>URL.revokeObjectURL(
n.href),1e4)}function Jn(e,t,n,o){let{t:r,st:s}=n;if(e.at==="sample"){let g=t.second??(t.token<r.length?ue(r,t.token):1/0),h=K(s,g);return!s.length||g>Math.max(s[s.length-1],
r.length?r[r.length-1]:0)?null:h>0&&(h>=s.length||g-s[h-1]<s[h]-g)?h-1:h}let i=t.token??K(r,t.second);return i>=o&&i<r.length?i:null}function ae(e){return e.toLocaleString(
"en-US",{maximumSignificantDigits:4})}function Gn({x:e},t,n){let o=[],r=null;return e.forEach((s,i)=>{s===null?(o.push(t[r]),r=null):(r===null||Math.abs(s-n)<Math.
abs(e[r]-n))&&(r=i)}),o}function Pt(e,t,n,o){let{head:r,series:s,hidden:i}=o,{unit:g,scale:h}=o.units[t],f=ye(e,o),a=p=>!p.kind||f.includes(p.kind),[l]=e.lines.
filter(p=>!p.curve),u=V(e).filter(a),m=e.lines.filter(p=>p.curve&&p.at!=="sample"&&a(p));return r.arms.flatMap((p,x)=>{let w=Jn(l,n,s[x],X(l,r));if(w===null||i.
has(p.name)||!u.length)return[];let c=u.map(d=>s[x][d.column][w]*d.scale*h),b=[c.map((d,v)=>ae(d)+(u.length>1?" "+u[v].kind:"")).join(" + ")+" "+g],k=m.filter(d=>p[d.
curve]);if(k.length){let d=k.reduce((T,L)=>T+ke(p[L.curve].x,p[L.curve][L.column],w+Je(L,p))*L.scale*h,0),v=Math.abs(d-c.reduce((T,L)=>T+L,0))<5e-4*d;b.push(k[0].
curve==="floor"?"roofline bound "+ae(d):v?"as predicted":"predicted "+ae(d))}for(let d of e.lines.filter(v=>v.curve&&v.at==="sample"&&p[v.curve])){let v=Gn(p[d.
curve],p[d.curve][d.column],s[x].st[w]);b.push(d.label+" "+v.map(T=>ae(T*d.scale*h)).join(", "))}return l.at==="token"&&n.token===void 0&&b.push(qe(r)+" "+q(w)),
e.lines.some(d=>d.at==="length")&&b.push(q(p.prompt_tokens+w)+" tokens cached"),[{arm:p.name,text:b.join(", ")}]})}function qe(e){return e.unit==="forward"?"pas\
s":"token"}function Nt(e,t,n,o,{head:r,series:s,hidden:i,axis:g,units:h,tops:f}){let[a]=V(e),l=X(a,r),u=f[t]===null?1/0:f[t]/a.scale/h[t].scale,m=null,p=o;return e.
annotations&&r.arms.forEach((x,w)=>{if(i.has(x.name))return;let c=s[w][a.column],b=new Set(x.marks.map(T=>T.token)),k=re(a,g,s[w]),[d,v]=Re(a,g,s[w],[n-o,n+o]);
for(let T=Math.max(l,d);T<=Math.min(v,c.length-1);T++){let L=Math.abs(k(T)-n);L<=p&&(b.has(T)||c[T]>u)&&(p=L,m=k(T))}}),g==="second"?{second:Math.max(0,m??n)}:{
token:m??Math.max(0,Math.round(n))}}function Rt(e,{head:t,series:n,hidden:o}){return t.arms.flatMap((r,s)=>{let i=e.token??K(n[s].t,e.second);return o.has(r.name)?
[]:r.marks.filter(g=>g.token===i&&i<n[s].t.length).map(g=>r.name+" "+qe(t)+" "+q(i)+": "+g.text)})}var Yn=5;function It(e,t,n,o){let r=null,s=null,i=null,g=x=>[e._fullLayout["xaxis"+F(x)],e._fullLayout["yaxis"+F(x)]];function h(x){let w=e.getBoundingClientRect(),
c=x.clientX-w.left,b=x.clientY-w.top;for(let k=0;k<o.length;k++){let[d,v]=g(k);if(c<d._offset||c>d._offset+d._length||b<v._offset||b>v._offset+v._length)continue;
let T=c-d._offset;return{i:k,x:d.p2l(T),reach:Math.abs(d.p2l(T+Yn)-d.p2l(T))}}return null}function f(x){let w=i&&i.head&&e._fullLayout?h(x):null;r=w&&Nt(o[w.i],
w.i,w.x,w.reach,i),p()}function a(){r&&(r=null,p())}function l(x,w,c){let[b,k]=g(x);if(w===null||w<b.range[0]||w>b.range[1])return[];let d=y("i","td-moment "+c);
return Object.assign(d.style,{left:b._offset+b.l2p(w)+"px",top:k._offset+"px",height:k._length+"px"}),[d]}function u(x,w,c){let[b,k]=g(x),d=y("span","td-place",
c),v=Math.min(b._length,Math.max(0,b.l2p(w)));return Object.assign(d.style,{left:b._offset+v+"px",top:k._offset+k._length+1+"px",transform:"translateX(-"+100*v/
b._length+"%)"}),d}function m(x,w){let c=Pt(o[x],x,w,i),[b,k]=g(x);if(!c.length)return[];let d=y("div","td-readout");Object.assign(d.style,{left:b._offset-4+"px",
width:b._length+8+"px",bottom:"calc(100% - "+k._offset+"px)"}),i.titles[x]&&d.append(y("strong","",i.titles[x]));for(let{arm:v,text:T}of c){let L=y("span","arm-"+
v.toLowerCase());L.append(y("b","td-arm",v),document.createTextNode(T)),d.append(L)}return[d]}function p(){let x=r||(s===null?null:{second:s}),w=[],c=x&&i&&i.head&&
e._fullLayout&&e._fullLayout.xaxis;c&&o.forEach((k,d)=>{if(!i.series.some(T=>T.t.length||T.st.length))return;let v=r?r.token??r.second:i.axis==="second"?s:null;
r?w.push(...l(d,v,"")):i.series.forEach((T,L)=>w.push(...l(d,Mt(i.axis,T,s),"arm-"+i.head.arms[L].name.toLowerCase()))),v!==null&&w.push(u(d,v,i.axis==="second"?
oe(v):qe(i.head)+" "+q(v))),w.push(...m(d,x))}),t.replaceChildren(...w);let b=c?Rt(x,i):[];n.hidden=!b.length,n.replaceChildren(...b.map(k=>y("span","",k)))}return e.
addEventListener("pointermove",f),e.addEventListener("pointerdown",x=>x.pointerType==="touch"?f(x):a()),e.addEventListener("pointerleave",a),{take(x){i=x,(r||s!==
null)&&p()},pointAt(x){s=x,p()},clear(){r=null,s=null,i=null,p()}}}function Bt(e,t,n){let o=null,r=[];function s(){o=null,r=[],t.replaceChildren()}function i(l,u){s(),l.head&&(o=l,r=n.map((m,p)=>h(m,p,u)),f())}function g(l){return o&&
(o={...o,series:l}),f()}function h(l,u,m){let p=e._fullLayout["xaxis"+F(u)],x=e._fullLayout["yaxis"+F(u)],w=window.devicePixelRatio,c=y("canvas",""),b=c.getContext(
"2d"),k=ye(l,o);c.width=Math.ceil(p._length*w),c.height=Math.ceil(x._length*w),Object.assign(c.style,{left:p._offset+"px",top:x._offset+"px",width:p._length+"px",
height:x._length+"px"}),b.scale(w,w),t.append(c);let d=V(l).filter(v=>!v.kind||k.includes(v.kind)).flatMap(v=>o.series.map((T,L)=>({line:v,a:L,next:Math.max(X(v,
o.head),m[L][v.column]-1),drawnPx:0,shown:![o.head.arms[L].name,v.kind].some(N=>N&&o.hidden.has(N))})));return{x:p,y:x,pen:b,lines:d,scale:o.units[u].scale}}function f(){
return o?r.map(a).some(Boolean):!1}function a({x:l,y:u,pen:m,lines:p,scale:x}){let w=!1;for(let c of p){let{line:b,a:k}=c,d=o.series[k][b.column],v=d.length;if(!c.
shown||v-c.next<2)continue;let T=re(b,o.axis,o.series[k]),L=se(o.head.arms[k],k),N=l.l2p(T(c.next)),A=u.l2p(d[c.next]*b.scale*x),M=c.drawnPx;m.beginPath(),m.moveTo(
N,A);for(let E=c.next+1;E<v;E++){let C=l.l2p(T(E)),R=u.l2p(d[E]*b.scale*x);m.lineTo(C,R),M+=Math.hypot(C-N,R-A),N=C,A=R,w=w||l.autorange&&N>l._length||u.autorange&&
(A<0||A>u._length)}m.strokeStyle=L.color,m.lineWidth=b.width,m.setLineDash(L.dash==="solid"?[]:L.dash.split(",").map(parseFloat)),m.lineDashOffset=c.drawnPx,m.stroke(),
c.next=v-1,c.drawnPx=M}return w}return{take:i,follow:g,draw:f,clear:s}}function ce(){return window.Plotly?Promise.resolve():window.tokendynoPlotly??=new Promise(e=>{let t=()=>{let n=document.createElement("script");n.src=settings.plotly,
n.addEventListener("load",()=>e()),n.addEventListener("error",()=>{n.remove(),setTimeout(t,1e3)}),document.head.append(n)};t()})}var Qn=760,$n=250,Zn=420,eo=40,to=()=>Math.round(Math.min(420,Math.max(200,.26*window.innerHeight))),no={responsive:!0,displaylogo:!1,showTips:!1,showSendToCloud:!1,
displayModeBar:!1};function Ut(e,t,n,o,r){let s="",i=null,g=[],h=null,f=[],a=[],l=[],u=new Set,m=!1,p=0,x="token",w=null,c=0,b=!1,k=!1,d=!1,v=!1,T=!0,L=!1,N=0,A=0,
M=10,E=300,C=1e3,R=[],D=[];function G(P){P&&En(),s=P,i=null,g=[],h=null,f=[],u=new Set,m=!1,T=!0,w=null,b=!1,o.clear(),r.clear()}function Q(P){t.forEach((B,U)=>{
let I="xaxis"+F(U),j=P[I+".range"]||[P[I+".range[0]"],P[I+".range[1]"]];P[I+".autorange"]?w=null:i&&j[0]!==void 0&&(w=j.map(Number))}),H()}function H(){T=!0,de(
!0)}function $(P){P!==x&&(x=P,w=w&&Xe(w,x,g),H())}function Te(P,B){if(!i||b||P.unit!=="ms")return null;let[U]=V(P),I=me(g.map(j=>j[U.column]),X(U,i));return I===
null?null:I*U.scale*f[B].scale}function Mn(P,B){if(!i||!h||P.unit!=="ms")return null;let[U]=V(P),I=X(U,i),j=g.reduce((ie,_e)=>_e[U.column].slice(I).reduce((te,ne)=>Math.
max(te,ne),ie),0);return j?1.05*j*U.scale*f[B].scale:null}function Ln(){let P={head:i,series:g,part:h,ended:m,hidden:u,axis:x,zoom:w,units:f,ink:W("--body-text-\
color"),neutral:W("--body-text-color-subdued")};f=t.map((I,j)=>i?Be(I,P,w&&f[j]):null),a=t.map(Te),n.outliers.hidden=!b&&a.every(I=>I===null),n.outliers.setAttribute(
"aria-pressed",String(b)),_(n.outliers,b?"Cut outliers off":"Show outliers in full"),n.whole.hidden=w===null;for(let I of n.axes.querySelectorAll("button"))I.setAttribute(
"aria-pressed",String(I.dataset.axis===x));_(n.axes.firstElementChild,i&&i.unit==="forward"?"Passes":"Tokens");let B=Ie(t,{...P,units:f,tops:a}),U=B.filter(I=>!I.
meta?.extent&&I.y.some(Number.isFinite)).map(I=>I.yaxis);return l=t.map((I,j)=>!h&&!U.includes("y"+F(j))),B}function Tn(){let P=element.clientWidth<Qn,B=t.length,
U=P?.13:.05,I=(1-U*(B-1))/B,j=element.clientWidth*(P?1:I)<Zn,ie=W("--body-text-color"),_e=W("--border-color-primary"),te={uirevision:s+"/"+c,datarevision:++p,paper_bgcolor:"\
rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:ie,size:11,family:W("--font")||"sans-serif"},height:P?$n*B:to(),margin:{t:j?56:36,b:34,l:44,r:8,autoexpand:!1},
hovermode:!1,dragmode:"zoom",annotations:[]};return t.forEach((ne,Z)=>{let Se=Z*(I+U),xe=P?[0,1]:[Se,Se+I],we=P?[1-Se-I,1-Se]:[0,1],at=ne.unit==="bytes"?f[Z]&&f[Z].
unit:ne.unit,Ee=i&&i.unit==="forward"&&ne.encoder||ne,Ae=Y(Ee.title||(i?i.memory_label:"memory")).slice(0,eo),it=a[Z]??Mn(ne,Z);D[Z]=j?"":Ae[0].toUpperCase()+Ae.
slice(1);let lt={gridcolor:_e,zeroline:!1,linecolor:_e,ticks:"",automargin:!1,showticklabels:!!i&&!Ee.note};te["xaxis"+F(Z)]={...lt,domain:xe,anchor:"y"+F(Z),uirevision:[
s,c,x].join("/"),...w?{range:[...w],autorange:!1}:{},title:{text:x==="second"?"seconds":i&&i.unit==="forward"?"forward pass":"token",standoff:2},nticks:6},te["y\
axis"+F(Z)]={...lt,domain:we,anchor:"x"+F(Z),rangemode:ne.from_zero?"tozero":"normal",nticks:6,tickformat:",~r",...it===null?{}:{range:[0,it],autorange:!1},...l[Z]?
{showticklabels:!1}:{}},i&&te.annotations.push(...Ue(ne,Z,{head:i,series:g,ended:m,axis:x,zoom:w,units:f},ie)),te.annotations.push({text:"<b>"+Ae[0].toUpperCase()+
Ae.slice(1)+"</b>"+(at?", "+at:""),showarrow:!1,xref:"paper",yref:"paper",x:xe[0],y:we[1],xanchor:"left",yanchor:"bottom",yshift:j?32:4,xshift:-4,font:{size:12}}),
Ee.note&&te.annotations.push({text:Y(Ee.note),showarrow:!1,xanchor:"center",xref:"paper",yref:"paper",x:(xe[0]+xe[1])/2,y:(we[0]+we[1])/2});let Cn={orientation:"\
h",x:xe[j?0:1],y:we[1],xanchor:j?"left":"right",yanchor:"bottom",bgcolor:"rgba(0,0,0,0)",font:{size:11},itemwidth:30};te["legend"+F(Z)]=Cn}),te}async function de(P){
if(!d||!T||L||document.hidden||!P&&performance.now()<N||!element.offsetParent)return;T=!1;let B=performance.now(),U=h||g,I=U.map(wt),j=Ln(),ie={head:i,series:g,
hidden:u,axis:x,units:f,tops:a,titles:D};L=!0;try{await Plotly.react(e,j,Tn(),no)}finally{L=!1}An(),ie.series===g&&(o.take(ie),r.take({...ie,series:U},I)),requestAnimationFrame(
()=>setTimeout(()=>{R.push(performance.now()-B),R.length>5&&R.shift(),A=performance.now()+E,N=performance.now()+Math.max(E,Math.min(C,Math.min(...R)*M)),window.
tokendynoProbe&&window.tokendynoProbe.painted(R[R.length-1])},0)),st()}function _n(){T=!0,r.draw()&&(N=Math.min(N,A)),st()}function st(){if(!window.tokendynoProbe||
L||!i)return;let P=g.map(B=>B.t.length);requestAnimationFrame(()=>setTimeout(()=>window.tokendynoProbe.shows(P),0))}function Sn(P){let B=P.data[P.curveNumber].meta.
legend;return u.delete(B)||u.add(B),H(),!1}async function En(){k||(k=!0,await ce(),d=!0,setInterval(()=>{element.isConnected&&de(!1)},33),de(!0))}function An(){
if(!v){v=!0,e.on("plotly_relayout",Q),e.on("plotly_legendclick",Sn),e.on("plotly_legenddoubleclick",()=>!1),n.outliers.addEventListener("click",()=>{b=!b,H()});
for(let P of n.axes.querySelectorAll("button"))P.addEventListener("click",()=>$(P.dataset.axis));n.whole.addEventListener("click",()=>{w=null,c++,H()})}}return{
reset:G,take(P,B){i=P,g=B,T=!0},end(){m=!0,T=!0,de(!0)},async picture(P){return await ce(),Plotly.downloadImage(e,{format:"png",filename:P,scale:2,width:e.clientWidth,
height:e.clientHeight})},get zoom(){return w&&(x==="token"?w:Xe(w,"token",g))},grow:_n,only(P){if(h===P)return;let B=h&&P&&P.every((U,I)=>U.t.length>=h[I].t.length);
h=P,T=!0,B&&r.follow(P)&&(N=Math.min(N,A)),de(!B)},touch(){T=!0,de(!1)},pace(P,B,U){M=P,E=B,C=U}}}var oo=10,ro=60,Ye=200,qt=[["Shortest",0],["10%",.1],["Median",.5],["90%",.9],["99%",.99],["Longest",1]];function be(e,t){return e[Math.max(0,Math.ceil(Number((t*
e.length).toFixed(9)))-1)]}function so(e,t,n){let o=X({first:1},e);return t.map(({lat:r})=>Float64Array.from(r.slice(Math.max(o,n?Math.ceil(n[0]):0),n?Math.floor(
n[1])+1:r.length)).sort())}function ao(e){let t=e.filter(f=>f.length),n=Math.min(...t.map(f=>f[0])),o=me(t.map(f=>[...f]),0)??Math.max(...t.map(f=>f[f.length-1])),
r=t.map(f=>2*(be(f,.75)-be(f,.25))/Math.cbrt(f.length)).filter(f=>f>0),s=Math.round(Math.min(ro,Math.max(oo,r.length?(o-n)/Math.min(...r):0))),i=o>n?(o-n)/s:Math.
max(1e-9,.01*n),g=Array.from({length:s+1},(f,a)=>n+a*i),h=e.map(()=>new Array(s).fill(0));return e.forEach((f,a)=>{for(let l of f)l<=o&&h[a][Math.min(s-1,Math.floor(
(l-n)/i))]++}),{edges:g,shares:h.map((f,a)=>f.map(l=>l/Math.max(1,e[a].length))),beyond:e.map(f=>f.length-K(f,o*(1+1e-12)))}}function io(e,t){let n=[];for(let o=0;o<=
Ye&&e.length;o++){let r=be(e,o/Ye);r<=t*(1+1e-12)&&n.push([r,o/Ye])}return n}function jt(e,t,n){let o=a=>t.querySelector(a),r=o(".td-spread-plot");function s(a,l,u){
let m=so(a,l,u),p=a.unit==="forward"?"passes":"tokens",x=u?p+" "+q(Math.ceil(Math.max(0,u[0])))+" to "+q(Math.floor(u[1]))+", as zoomed":a.unit==="forward"?"all\
 passes":"all tokens after the first";if(_(o(".td-spread-what"),"The first run of each arm: "+x+"."),!m.some(b=>b.length)){i();return}let w=ao(m),c=w.edges[w.edges.
length-1];_(o(".td-spread-said"),g(a,m,w,c,p)),o("table").replaceChildren(...h(a,m,p)),f(a,m,w,c,p)}function i(){_(o(".td-spread-said"),"There are no latencies \
here."),window.Plotly&&Plotly.purge(r),o("table").replaceChildren()}function g(a,l,{beyond:u},m,p){return a.arms.map(({name:x},w)=>{if(!l[w].length)return"Arm "+
x+" has none yet.";let[c,b]=[.25,.75].map(d=>ae(1e3*be(l[w],d))),k=u[w]?", and "+q(u[w])+" longer than the "+ae(1e3*m)+" ms that are drawn":"";return"Half of th\
e "+p+" of arm "+x+" took "+c+" to "+b+" ms"+k+"."}).join(" ")}function h(a,l,u){let m=(x,w,c)=>{let b=y("tr",c);return w.forEach((k,d)=>{let v=y(d?x:"th","",k);
v.tagName==="TH"&&(v.scope=d?"col":"row"),b.append(v)}),b},p=m("th",["ms",u[0].toUpperCase()+u.slice(1),"Mean",...qt.map(([x])=>x)],"");return p.cells[0].scope=
"col",[p,...a.arms.map(({name:x},w)=>{let c=l[w],b=c.reduce((d,v)=>d+v,0)/c.length,k=qt.map(([,d])=>c.length<(n[d]||1)?"needs "+n[d]:ae(1e3*be(c,d)));return m("\
td",["Arm "+x,q(c.length),...c.length?[ae(1e3*b),...k]:[]],"arm-"+x.toLowerCase())})]}function f(a,l,{edges:u,shares:m},p,x){let w=W("--body-text-color"),c=W("-\
-border-color-primary"),b=u.map(N=>1e3*N),k=a.arms.flatMap(({name:N},A)=>{let M={width:1.6,...se(a.arms[A],A)},E=io(l[A],p),C={type:"scatter",mode:"lines",name:Y(
N),line:M,hoverinfo:"skip"};return[{...C,x:b,y:[...m[A].map(R=>100*R),0],line:{...M,shape:"hv"},fill:"tozeroy",fillcolor:M.color+"30"},{...C,x:E.map(R=>1e3*R[0]),
y:E.map(R=>100*R[1]),line:{...M,shape:"hv"},xaxis:"x2",yaxis:"y2",showlegend:!1}]}),d=.02*(b[b.length-1]-b[0]),v=[b[0]-d,b[b.length-1]+d],T={gridcolor:c,linecolor:c,
zeroline:!1,nticks:6,fixedrange:!0},L=N=>({text:N,standoff:4});ce().then(()=>Plotly.react(r,k,{paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{
color:w,size:11,family:W("--font")||"sans-serif"},height:260,margin:{t:24,b:38,l:46,r:8},hovermode:!1,legend:{orientation:"h",x:1,xanchor:"right",y:1,yanchor:"b\
ottom"},xaxis:{...T,range:v,domain:[0,.47],title:L("latency, ms")},yaxis:{...T,title:L("% of "+x),rangemode:"tozero"},xaxis2:{...T,domain:[.55,1],anchor:"y2",matches:"\
x",title:L("latency, ms")},yaxis2:{...T,anchor:"x2",title:L("cumulative %"),range:[0,101]}},{staticPlot:!0,responsive:!0,showSendToCloud:!1}))}return{show:s,openOn(a){
e.addEventListener("click",()=>{a()&&(t.showModal(),s(...a()))}),t.querySelector(".td-close").addEventListener("click",()=>t.close()),t.addEventListener("click",
l=>{l.target===t&&t.close()})},follow(a){t.open&&a()&&s(...a())}}}var lo=3,co=8e3;function Ft(e,t,n){let o=60,r=0,s=!1,i=0,g=0,h=0,f=0,a=!1,l=!1;function u(w){return new Promise((c,b)=>{let k=setTimeout(()=>b(new Error("no ans\
wer")),co);w.then(d=>{clearTimeout(k),c(d)},d=>{clearTimeout(k),b(d)})})}async function m(){let w=f;i++;try{let c="more";for(;c==="more";){let b=await u(e());if(w!==
f)return;l=!0,g&&(g=0,h=0,n("")),c=t(b)}c==="over"&&(a=!1)}catch{if(w!==f||!a)return;g++;let c=Math.min(1e4,250*2**g);h=performance.now()+c,n("The server does n\
ot answer. Retrying in "+oe(c/1e3)+"; nothing is lost.")}finally{i--}}async function p(){if(!element.isConnected)return;let w=g||!l||s?1:lo,c=a&&!document.hidden&&
i<w&&performance.now()>=h,b=c&&m();s&&await b,setTimeout(p,Math.max(o,r))}setTimeout(p,0),document.addEventListener("visibilitychange",()=>{!document.hidden&&element.
isConnected&&a&&i===0&&(h=0,m())});function x(){f++,g=0,h=0,l=!1,a=!0,n(""),document.hidden||m()}return{begin:x,stop(){f++,a=!1},every(w,c=!1){o=w,s=c},atLeast(w){
r=w},get running(){return a}}}var je=4e3;function Qe(e,t,n){let o=K(e.t,n);if(o>=e.t.length)return e.n.length?e.n[e.n.length-1]:0;let r=o?[e.t[o-1],e.n[o-1]]:[t,0];return n<=r[0]?r[1]:Math.floor(
r[1]+(e.n[o]-r[1])*(n-r[0])/(e.t[o]-r[0]))}function fo(e,t){let n=Dt(e.t,t),o=Dt(e.st,t),r={...e};for(let s of Ne)r[s]=e[s].slice(0,n);for(let s of["st","sm"])r[s]=
e[s].slice(0,o);return r}function Dt(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<=t?n=r+1:o=r}return n}function zt(e,t,n,o,r,s){let i=null,g=[],h=0,f=0,
a=!1,l=0;function u(d,v){i=d,g=v,h=Math.max(0,...g.map(L=>L.t.length?L.t[L.t.length-1]:0));let T=h>0&&i.unit!=="forward"&&i.arms.some(L=>L.pace.t.length);e.disabled=
t.disabled=o.disabled=!T,t.max=String(h),T&&(f=h,t.value=String(h),m())}function m(){_(e,a?"❚❚ Pause":"▶ Race");let d=i?i.arms.filter((T,L)=>g[L].t.length&&
f>=g[L].t[g[L].t.length-1]).map(T=>T.name):[],v=f<h&&d.length?", "+d.join(" and ")+" done":"";_(n,h?f.toFixed(h>=100?0:h>=10?1:2)+" of "+oe(h)+v:""),t.setAttribute(
"aria-valuetext",oe(f))}function p(){f>=h?(r.whole(),s(null,null)):(i.arms.forEach((d,v)=>r.upTo(v,g[v].t.length?Qe(d.pace,g[v].t[0],f):0)),s(f,g.map(d=>fo(d,f)))),
m()}function x(d){if(!a||!element.isConnected)return;let v=Math.max(0,d-l);f=Math.min(h,f+v/1e3*Number(o.value)),l=d,f>=h&&(a=!1),t.value=String(f),p(),a&&requestAnimationFrame(
x)}function w(){a=!1,h=0,f=0,i=null,g=[],e.disabled=t.disabled=o.disabled=!0,t.value="0",s(null,null),m()}function c(){e.disabled||(a=!a,a&&(f>=h&&(f=0),l=performance.
now(),requestAnimationFrame(x)),p())}function b(){i&&(a=!1,f=h,t.value=String(f),p())}function k(d){let v=g.flatMap(L=>L.t),T=d>0?Math.min(h,...v.filter(L=>L>f)):
Math.max(0,...v.filter(L=>L<f));a=!1,f=T,t.value=String(f),p()}return e.addEventListener("click",c),t.addEventListener("input",()=>{a=!1,f=Number(t.value),p()}),
t.addEventListener("keydown",d=>{let v={ArrowLeft:-1,ArrowDown:-1,ArrowRight:1,ArrowUp:1}[d.key];v&&(d.preventDefault(),k(v))}),{ready:u,clear:w,toggle:c,whole:b,
step:k,state:()=>({able:!e.disabled,playing:a,at:f<h?f:null,clock:n.textContent})}}var uo=5e3,po=3e3;function Ht(e){let t=[],n=null,o=[];function r(l,u){if(e.replaceChildren(),o=[],u==="forward"){t=[],e.append(y("p","td-empty","An encoder gene\
rates no text: its forward passes are timed."));return}t=l.map(m=>{let p=y("section","td-text arm-"+m.name.toLowerCase()),x=y("div","td-scroll");x.tabIndex=0,x.
setAttribute("role","region"),x.setAttribute("aria-label","Text of arm "+m.name);let w=y("div","td-body");return w.append(document.createTextNode("")),x.append(
w),p.append(x),e.append(p),{body:w}}),n=y("p","td-text-comparison",""),e.append(n)}function s(l,u){if(!u||!t[l])return;let m=t[l].body.firstChild;m.appendData(u),
m.length>uo&&m.deleteData(0,m.length-po)}function i(l,u,m){if(!t[l])return;o[l]={text:u,difference:m};let p=t[l].body;if(p.replaceChildren(),m<0){p.append(document.
createTextNode(u));return}let x=y("span","td-divergent"),w=y("mark","td-difference","≠");w.title="The texts differ from here on.",x.append(document.createTextNode(
u.slice(m))),p.append(document.createTextNode(u.slice(0,m)),w,x)}function g(){for(let{body:l}of t){let u=l.parentElement,m=l.querySelector(".td-difference");m&&
(u.scrollTop+=m.getBoundingClientRect().top-u.getBoundingClientRect().top-u.clientHeight/3)}}function h(l,u){if(!t.length)return;let m=l.map(k=>k.text),[p,x]=m,
w=m.length<2?-1:bt(p,x);if(m.forEach((k,d)=>{i(d,k,w),t[d].body.closest(".td-text").classList.toggle("td-unwritten",!k)}),g(),m.length<2)return;let c=Math.min(p.
length,x.length),b=w<0&&p.length===x.length;c?b?_(n,"The texts are identical."):w<0?_(n,"The first "+q(c)+" characters are identical; one text is longer."):u?.startsWith(
"The texts differ")?_(n,"Marked ≠: "+u):_(n,"The texts first differ at character "+q(w+1)+", marked ≠. "+(u||"")):_(n,"")}function f(l,u){if(!t[l]||!o[l])return;
let m=o[l].text.slice(0,u),p=document.createTextNode(m.slice(-je));t[l].body.replaceChildren(p)}function a(){t.forEach((l,u)=>{o[u]&&i(u,o[u].text,o[u].difference)}),
g()}return{build:r,append:s,finish:h,upTo:f,whole:a}}function Kt(e){let t=null,n=[],o=0;function r(a){e.replaceChildren(),n=a.map(l=>{let u=y("div","td-phases arm-"+l.name.toLowerCase()),m=y("span","td-steps"),p=y(
"i","td-phase-bar");return u.append(y("span","td-arm",l.name),y("b","td-label",l.label),m,p),e.append(u),{steps:m,bar:p,chips:new Map}})}function s(a,l,u){let m=a.
state==="begin"||a.state==="step",p=a.title+" "+oe(m?Math.max(a.seconds,l-a.begin_s):a.seconds);return a.name==="run"&&!(t.quality&&!u)?p+=", "+q(u)+" of "+q(t.
max_new_tokens)+(t.unit==="forward"?" passes":" tokens"):m&&a.fraction!==null&&(p+=", "+Math.round(100*a.fraction)+"%"),a.wait&&(p+=", "+a.wait),m&&a.note&&(p+=
" ("+a.note+")"),a.state==="broken"?"✕ "+p:p}function i(a,l){return a.expected_s?Math.min(.95,(l-a.begin_s)/a.expected_s):0}function g(a,l){if(!t)return;let u=t.
now_s+(performance.now()-o)/1e3;t.arms.forEach((m,p)=>{let x=n[p];if(!m.phases.length){_(x.steps,l?"did not run":p?"waiting for arm "+t.arms[p-1].name:"waiting");
return}x.chips.size||x.steps.replaceChildren();for(let k of m.phases){let d=x.chips.get(k.name);d||(d=y("span",""),x.chips.set(k.name,d),x.steps.append(d));let v="\
td-step "+k.state;d.className!==v&&(d.className=v),_(d,s(k,u,a[p].t.length))}let w=m.phases[m.phases.length-1],c=w.name==="run"?a[p].t.length/t.max_new_tokens:w.
fraction||i(w,u),b=m.state==="working"?(100*Math.min(1,c)).toFixed(1)+"%":"0";x.bar.style.width!==b&&(x.bar.style.width=b)})}function h(a){t=a,o=performance.now()}
function f(){t=null,n=[],e.replaceChildren()}return{build:r,take:h,tick:g,clear:f}}function Xt(e,t,n,o,r,s){function i(a,l){_(e,h(a,l)),e.classList.toggle("td-underway",!a.verdict.sentence),_(t,a.verdict.basis),_(o,a.verdict.unasked),s&&_(s,a.
verdict.pays),g(a.verdict),n.hidden=!a.digest,a.digest&&(n.className="td-digest "+a.digest.status,_(n,a.digest.line))}function g({gate:a,gate_run:l}){!r||r.textContent===
(a||"")||(r.replaceChildren(),r.title=a||"",a&&(l?r.append(Object.assign(y("a","td-gate-line",a),{href:"?"+new URLSearchParams({run:l})})):r.append(y("span","td\
-gate-line",a))))}function h(a,l){if(a.verdict.sentence)return a.verdict.sentence;if(l==="queued")return"Waiting for the runs before this one.";if(l!=="running")
return l==="done"?"The run is complete.":l==="cancelled"?"Stopped before both arms were complete: no verdict.":"";let u=a.arms.find(x=>x.state==="working");if(!u)
return"Starting.";let m=a.arms.filter(x=>x.state==="waiting").map(x=>x.name),p=u.phases.at(-1);return"Running arm "+u.name+(p?": "+p.title:"")+(m.length?"; then\
 arm "+m.join(" and ")+".":".")}function f(){_(e,""),_(t,""),_(o,""),s&&_(s,""),g({gate:"",gate_run:""}),n.hidden=!0}return{take:i,clear:f}}function Vt(e,t){let n=y("div","td-said"),o=y("div","td-four"),r=y("div","td-advice"),s=y("p","td-lead"),i=y("p","td-number"),g=y("p","td-tail"),h=y("div","td-s\
cale"),f=y("p","td-badge-said"),a=y("p","td-reason"),l=y("button","td-next");l.type="button";let u=y("div","td-ratio");u.append(i,h),n.append(s,u,g),r.append(f,
a,l),e.append(n,o,r);let m=null;l.addEventListener("click",()=>{t&&m?.next&&t(m.next)});function p(c){m=c,e.hidden=!c,c&&(e.className="td-answer "+c.tone+(c.decided?
" td-decided":""),_(s,c.lead),_(i,c.figure),_(g,c.tail),w(c),o.replaceChildren(...c.tiles.map(x)),_(f,c.recommendation),_(a,c.reason),l.hidden=!t||!c.next,c.next&&
_(l,c.next.label))}function x(c){let b=y("div","td-one"),k=y("p","td-values");return k.append(y("b",c.b?"arm-a":"",c.a)),c.b&&k.append(y("span",""," → "),y("b",
"arm-b",c.b)),c.unit&&k.append(y("small",""," "+c.unit)),b.append(y("h3","",c.title),k,y("p","td-one-note",c.note)),b}function w(c){if(h.replaceChildren(y("p","\
td-ends",c.ends||(c.pairs.length===1?"one pair, no interval yet":""))),c.low===null||c.high===null)return;let b=mo(c),k=y("div","td-axis-line"),d=L=>100*(Math.log(
L)-b.from)/(b.to-b.from)+"%",v=y("i","td-band");v.style.left=d(Math.max(c.low,Math.exp(b.from))),v.style.right="calc(100% - "+d(Math.min(c.high,Math.exp(b.to)))+
")",k.append(v,...c.pairs.map(L=>Object.assign(y("i","td-pair"),{style:"left:"+d(L)}))),b.from<0&&b.to>0&&k.append(Object.assign(y("i","td-even"),{style:"left:"+
d(1),title:"as fast"})),k.append(Object.assign(y("i","td-middle"),{style:"left:"+d(c.ratio)}));let T=y("div","td-ticks");for(let L of[Math.exp(b.from),Math.exp(
b.to)])T.append(y("span","",ho(L)));h.append(k,T)}return{take:p,clear:()=>p(null)}}function mo(e){let t=e.pairs.map(Math.log),n=Math.log(e.ratio),o=Math.max(.01,
Math.max(...t)-n,n-Math.min(...t)),r=Math.min(4*o,Math.max(Math.log(e.high)-n,n-Math.log(e.low))),s=1.15*Math.max(o,r);return{from:n-s,to:n+s}}function ho(e){return(e>=
10?e.toFixed(1):e.toFixed(2))+"×"}var Wt=[["title","Text",""],["positions","Positions","tokens that both arms were asked to predict"],["a","Perplexity A",""],["b","Perplexity B",""],["ratio","B \
/ A","perplexity of B / perplexity of A"],["kl","KL, nats","mean divergence of B from A"],["largest","Largest KL","at a single position"],["agreement","Agreemen\
t","positions at which both find the same token most likely"],["divergence","First divergence","first position at which they do not"]];function Jt(e){let t="";function n(s){
let i=JSON.stringify(s);if(i===t||(t=i,e.hidden=!s,e.replaceChildren(),!s)||(e.append(y("h3","","Quality on given texts")),e.append(o(s.rows)),s.progress&&e.append(
y("p","td-quality-progress",s.progress)),s.note&&e.append(y("p","",s.note)),!s.compared))return;let g=y("p",""),h=y("a","td-compared","The comparison of these a\
rms");h.href="?"+new URLSearchParams({run:s.compared}),g.append(h,document.createTextNode(" names this cost beside its gain.")),e.append(g)}function o(s){let i=y(
"div","td-quality-rows"),g=y("table",""),h=y("tr",""),f=y("thead",""),a=y("tbody","");i.tabIndex=0,i.setAttribute("role","region"),i.setAttribute("aria-label","\
Quality by text");for(let[,l,u]of Wt){let m=y("th","",l);m.scope="col",m.title=u,h.append(m)}f.append(h);for(let l of s){let u=y("tr",l===s[s.length-1]?"td-all-\
texts":""),m=y("th","",l.title);m.scope="row",u.append(m,...Wt.slice(1).map(([p])=>y("td","",l[p]))),a.append(u)}return g.append(f,a),i.append(g),i}function r(){
t="",e.hidden=!0,e.replaceChildren()}return{take:n,clear:r}}function Gt(e){let t=new Map,n="";function o(g,h){let f=[...new Map(g.flatMap(l=>l.tiles.map(u=>[u.key,u.label])))],a=JSON.stringify([f,g.map(l=>l.name)]);n!==a&&
s(f,g,a);for(let[l]of f){let u=g.map(d=>d.tiles.find(v=>v.key===l)),{card:m,values:p,unit:x,foot:w}=t.get(l),c=[...new Set(u.map(d=>d&&d.unit).filter(Boolean))],
b=c.length===1;p.forEach((d,v)=>{let T=u[v],L=T&&T.value!=="n/a";_(d.number,L?T.value:"–"),_(d.unit,L&&!b&&T.unit?" "+T.unit:"")}),_(x,b?c[0]:"");let k=h[l];_(
w,k?k.text:r(u.map(d=>d?d.note:""))),w.className="td-foot"+(k&&k.better?" better":""),m.title=u.map((d,v)=>d&&d.note?g[v].name+": "+d.value+" "+d.unit+", "+d.note:
"").filter(Boolean).join(`
`)}}function r(g){let[h,...f]=new Set(g.filter(Boolean)),a=g.every(Boolean);return h&&!f.length&&(a||!/\d/.test(h))?h:""}function s(g,h,f){e.replaceChildren(),t=
new Map,n=f;for(let[a,l]of g){let u=y("div","td-tile"),m=y("p","td-figure"),p=y("span","td-unit",""),x=y("small","td-foot","");u.dataset.key=a;let w=h.map(c=>{let b=y(
"b","arm-"+c.name.toLowerCase()),k=y("span","",""),d=y("small","","");return b.append(k,d),m.append(y("span","td-hidden","Arm "+c.name+": "),b),{number:k,unit:d}});
m.append(p),u.append(y("h3","",l),m,x),e.append(u),t.set(a,{card:u,values:w,unit:p,foot:x})}}function i(){for(let{card:g,values:h,unit:f,foot:a}of t.values())g.
title="",h.forEach(l=>{_(l.number,"–"),_(l.unit,"")}),_(f,""),_(a,"")}return{take:o,clear:i}}function Yt(e){let t="";function n(s){let i=s.filter(u=>u.details.length),g=JSON.stringify(i.map(u=>[u.name,u.details]));if(g===t)return;if(t=g,e.replaceChildren(),
!i.length){e.append(y("p","td-empty","Percentiles, intervals and readings of the machine appear here once an arm has finished."));return}let h=y("table",""),f=y(
"thead",""),a=y("tbody","");f.append(Oe("Figure",i));let l=new Map(i.flatMap(u=>u.details.map(m=>[m.key,m.label])));for(let[u,m]of l){let p=y("tr",""),x=y("th",
"",m);x.scope="row",p.dataset.key=u,p.append(x,...i.map(w=>o(w.details.find(c=>c.key===u)))),a.append(p)}h.append(f,a),e.append(h)}function o(s){let i=y("td","");
return s&&(i.append(y("b","",s.value),document.createTextNode(s.unit?" "+s.unit:"")),s.note&&i.append(y("small","",s.note))),i}function r(){t="",e.replaceChildren()}
return{take:n,clear:r}}var go={verified:"✓ verified",partial:"◐ partial",no_effect:"○ no effect",fallback:"▲ fallback",failed:"✕ failed",unchecked:"◌ unchecked",off:"off",
not_applicable:"not applicable"};function Qt(e){let t="",n=!1;function o(h,f){let a=JSON.stringify([h.map(b=>b.ledger),f]);if(a===t)return;if(t=a,e.replaceChildren(),
!f){e.append(y("p","td-empty","Proof that each choice took effect appears here once an arm has finished."));return}let l=y("table",""),u=y("tr",""),m=y("thead",
""),p=y("tbody",""),x=y("caption","","Ledger");x.append(y("small","",f.line)),l.append(x);for(let b of["Axis","Arm","Requested","Planned","Effective","Status","\
Proof"]){let k=y("th","",b);k.scope="col",k.role="columnheader",u.append(k)}m.append(u);for(let[b,k]of[[m,"rowgroup"],[p,"rowgroup"],[u,"row"]])b.role=k;let w=[
...new Set(h.flatMap(b=>b.ledger.map(k=>k.axis)))];for(let b of w){let k=s(h,b);k.forEach((d,v)=>{let T=i(d,f.titles[b]||b,v?0:k.length);T.classList.toggle("td-\
quiet",!f.shown.includes(b)),p.append(T)})}let c=y("button","td-all","");c.type="button",c.addEventListener("click",()=>{n=!n,r(l,c,w.length,f)}),l.append(m,p),
e.append(l,c),r(l,c,w.length,f)}function r(h,f,a,l){let u=!n&&!l.shown.length;h.classList.toggle("td-folded",!n),h.classList.toggle("td-none",u),h.role=u?"prese\
ntation":"table",f.hidden=l.shown.length===a,_(f,n?"Only what differs or is not verified":"All "+a+" axes with their proof"),f.setAttribute("aria-expanded",String(
n))}function s(h,f){let a=new Map;for(let l of h)for(let u of l.ledger.filter(m=>m.axis===f)){let m=JSON.stringify(u);a.has(m)?a.get(m).arms.push(l.name):a.set(
m,{...u,arms:[l.name]})}return[...a.values()]}function i(h,f,a){let l=y("tr",h.status);if(l.role="row",a){let p=y("th","",f);p.scope="rowgroup",p.rowSpan=a,p.role=
"rowheader",l.append(p)}let u=y("td","td-who");for(let p of h.arms){let x=y("span","arm-"+p.toLowerCase());x.append(y("span","td-arm",p)),u.append(x)}l.append(u);
for(let p of["requested","planned","effective"]){let x=y("td","td-choice",h[p]);x.dataset.title=p,l.append(x)}l.append(y("td","td-status",go[h.status]||h.status));
let m=y("td","td-proof",h.proof);h.reason&&m.append(y("small","",h.reason)),l.append(m);for(let p of l.querySelectorAll("td"))p.role="cell";return l}function g(){
t="",n=!1,e.replaceChildren()}return{take:o,clear:g}}var $t={ok:"",note:"Note: ",fallback:"▲ Fallback: ",blocked:"✕ Blocked: "};function Zt(e,t){let n=t.flatMap(r=>[...r.verdicts.filter(s=>s.level!=="ok").map(
s=>({arm:r.name,level:s.level,text:$t[s.level]+s.reason})),...r.spoilers.map(s=>({arm:r.name,level:"fallback",text:"▲ "+s})),...r.notes.map(s=>({arm:r.name,level:"\
note",text:$t.note+s}))]),o=JSON.stringify(n);e.dataset.shown!==o&&(e.dataset.shown=o,e.replaceChildren(...n.map(r=>{let s=y("li",r.level+" arm-"+r.arm.toLowerCase());
return s.append(y("span","td-arm",r.arm),document.createTextNode(r.text)),s})))}function $e(e,{of:t,title:n,hint:o,whole:r,numbers:s,lacking:i}){let g="";function h(p){let x=p.map(d=>({name:d.name,step:t(d)})).filter(d=>d.step),w=JSON.stringify(
x);if(w===g)return;g=w,e.hidden=!x.length;let c=x.filter(d=>!d.step.missing),b=Math.max(...c.map(d=>d.step.seconds)),k=y("h3","",n);if(c.some(d=>d.step.parts.some(
v=>v.reads_s!==null))&&k.append(y("span","td-part-hint",o)),e.replaceChildren(k,...c.map(d=>a(d,b))),c.length){let d=y("div","td-part-scroll");d.tabIndex=0,d.setAttribute(
"role","region"),d.setAttribute("aria-label",s),d.append(l(c)),e.append(d)}for(let d of x){let v=y("p","arm-"+d.name.toLowerCase());v.append(y("span","td-arm",d.
name),document.createTextNode(d.step.missing?i+d.step.missing+".":f(d.step.said))),e.append(v)}}function f(p){return p[0].toUpperCase()+p.slice(1)+"."}function a({
name:p,step:x},w){let c=y("div","td-part-bar arm-"+p.toLowerCase()),b=y("div","td-part-track");c.setAttribute("aria-hidden","true");for(let k of x.parts){if(!k.
seconds)continue;let d=y("span","td-part-piece td-part "+k.key);if(d.style.width=100*k.seconds/w+"%",d.title=[k.label+" "+k.text,k.reads].filter(Boolean).join("\
, "),k.reads_s!==null){let v=y("i","td-part-need");v.style.width=Math.min(100,100*k.reads_s/k.seconds)+"%",d.append(v)}b.append(d)}return c.append(y("span","td-\
arm",p),b),c}function l(p){let x=y("table",""),w=y("thead",""),c=y("tbody","");w.append(Oe("Part",p));let b=[];for(let v of p){let T=0;for(let L of v.step.parts){
let N=b.findIndex(A=>A.key===L.key);N<0?b.splice(T++,0,L):T=N+1}}for(let{key:v,label:T}of b){let L=y("tr",""),N=y("th","");L.dataset.key=v,N.scope="row",N.append(
y("i","td-part-key td-part "+v),document.createTextNode(T)),L.append(N,...p.map(A=>u(A.step.parts.find(M=>M.key===v)))),c.append(L)}let k=y("tr",""),d=y("th","",
r);return d.scope="row",k.append(d,...p.map(v=>y("td","",v.step.text))),c.append(k),x.append(w,c),x}function u(p){let x=y("td","");return p&&(x.append(y("b","",
p.text),document.createTextNode(p.seconds===null?"":" "+Math.round(100*p.share)+"%")),p.reads&&x.append(y("small","",p.reads))),x}function m(){g="",e.hidden=!0,
e.replaceChildren()}return{take:h,clear:m}}function en(e){let t="",n=null;function o(i){let g=JSON.stringify(i.crossing??null);if(g===t)return;if(t=g,n=i.crossing?i:null,e.hidden=!n,!n){e.replaceChildren();
return}let h=y("h3","","When does waiting pay?");h.append(y("span","td-part-hint","seconds since the imports were done, over "+(i.unit==="forward"?"forward pass\
es":"tokens written")));let f=y("div","td-crossing-plot");f.setAttribute("aria-hidden","true"),e.replaceChildren(h,f),r()}function r(){if(!n)return;let{arms:i,crossing:{
starts_s:g,steps_s:h,tokens:f,label:a}}=n,l=e.querySelector(".td-crossing-plot"),u=W("--body-text-color"),m=W("--border-color-primary"),p=2*f,x=(d,v)=>g[d]+v*h[d],
w=Math.max(...i.map((d,v)=>x(v,p))),c=i.map((d,v)=>({type:"scatter",mode:"lines",name:"Arm "+Y(d.name),line:{width:2,...se(d,v)},x:[0,p],y:[x(v,0),x(v,p)]})),b=x(
0,f),k={gridcolor:m,linecolor:m,zeroline:!1,nticks:6,fixedrange:!0};c.push({type:"scatter",mode:"markers",x:[f],y:[b],marker:{size:9,color:W("--body-background-\
fill"),line:{width:2,color:u}},showlegend:!1}),ce().then(()=>Plotly.react(l,c,{paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:u,size:11,
family:W("--font")||"sans-serif"},height:220,margin:{t:24,b:38,l:46,r:8},hovermode:!1,legend:{orientation:"h",x:1,xanchor:"right",y:1,yanchor:"bottom"},xaxis:{...k,
range:[0,p],tickformat:",",title:{text:n.unit==="forward"?"forward passes":"tokens",standoff:4}},yaxis:{...k,range:[0,1.05*w],ticksuffix:" s"},annotations:[{x:f,
y:b,text:"<b>"+Y(a)+"</b>",showarrow:!1,yanchor:"top",xanchor:"left",xshift:8,yshift:-6}]},{staticPlot:!0,responsive:!0,showSendToCloud:!1}))}function s(){o({})}
return Ce(r),{take:o,clear:s}}var Ze=e=>{let t=e.composedPath()[0],n=!e.ctrlKey&&!e.metaKey&&!e.altKey&&!e.isComposing&&!e.defaultPrevented,o=t instanceof HTMLInputElement?!["range","checkbo\
x","radio","button"].includes(t.type):!1;return n&&!o&&!t.closest?.('textarea, select, [contenteditable="true"], [role="combobox"], [role="listbox"]')};var xo="http://www.w3.org/2000/svg",wo=5,tn=32,ko=1.12;function nn(e,t,n=wo){let o=(t-e)/(n-1),r=10**Math.floor(Math.log10(o)),s=r*[1,2,2.5,5,10].find(g=>g*r>=o*
(1-1e-9)),i=[];for(let g=Math.ceil(e/s-1e-9);g*s<=t*(1+1e-9);g++)i.push(Number((g*s).toPrecision(12)));return i}function yo(e,t,n,o){let r=e.map((h,f)=>f).sort(
(h,f)=>e[h]-e[f]),s=[...e],i=n;for(let h of r)s[h]=Math.max(i,s[h]),i=s[h]+t;let g=o;for(let h of r.reverse())s[h]=Math.min(g,s[h]),g=s[h]-t;return s}function on(e,t,{
head:n,series:o,ended:r},s){let i=Math.max(0,e.findIndex(A=>A.key===t)),g=e[i],h={head:n,series:o,ended:r,hidden:new Set,axis:"token",zoom:null,ink:"",neutral:""},
f=e.map(A=>Be(A,h,null)),{unit:a,scale:l}=f[i],m=Ie(e,{...h,units:f,tops:null}).filter(A=>A.meta?.chart===g.key&&A.meta.arm&&A.meta.curve!=="ranks"&&A.y.length).
map(A=>{let M=n.arms.find(({name:$})=>$===A.meta.arm),E=A.y[A.y.length-1],C=M.tiles.find($=>$.key==="latency"),R=s[M.name]||"",D=R.length>tn?R.slice(0,tn)+"…":
R,G=g.key==="latency"&&C&&C.value!=="n/a"?C.value+" "+C.unit:Number(E.toPrecision(3))+" "+a,Q=[M.name,D===M.name?"":D].filter(Boolean).join(" "),H=A.meta.curve?
"":Q+(A.meta.kind?", "+A.meta.kind+" layers":"")+": "+G;return{arm:M.name,curve:!!A.meta.curve,label:H,x:A.x,y:A.y,color:A.line.color,dash:A.line.dash,width:A.line.
width}}),p=m.filter(A=>!A.curve),[x]=V(g),w=X(x,n),c=g.unit==="ms"?me(o.map(A=>A[x.column]),w):null,b=p.flatMap(A=>A.y),k=Math.max(0,...b),d=b.length?Math.min(...b):
0,v=c===null?k:c*x.scale*l,T=g.from_zero?0:Math.max(0,Math.min(d,k*(1-g.min_span))-.1*(k-d)),L=Ue(g,i,{...h,units:f},"").map(({text:A,y:M})=>({text:A,y:M})),N=n.
unit==="forward"&&g.encoder?.title||g.title||n.memory_label;return{title:N[0].toUpperCase()+N.slice(1)+", "+a,lines:m,bounds:L,low:T,high:v>T?T+ko*(v-T):T+1,last:Math.
max(1,...p.map(A=>A.x[A.x.length-1]??0)),word:n.unit==="forward"?"forward pass":"token"}}function rn(e,{title:t,lines:n,bounds:o,low:r,high:s,last:i,word:g}){let h=e.
clientWidth,f=e.clientHeight,a=parseFloat(getComputedStyle(e).fontSize);if(e.replaceChildren(),h<8*a||f<8*a||!n.length)return;let l=nn(r,s),u=nn(0,i,6),m=a*(.8+
.6*Math.max(...l.map(M=>M.toLocaleString("en-US").length))),p=1.4*a,x=2.2*a,w=3*a,c=M=>m+(h-m-p)*M/i,b=M=>x+(f-x-w)*(1-(M-r)/(s-r)),k=he("svg",{width:h,height:f,
viewBox:[0,0,h,f].join(" "),"aria-hidden":"true"}),d="td-slide-"+e.closest("[id]")?.id,v=he("clipPath",{id:d});v.append(he("rect",{x:m,y:x,width:h-m-p,height:f-
x-w})),k.append(v,ve(0,a,t,"start","td-slide-axis"));for(let M of l)k.append(he("line",{x1:m,x2:h-p,y1:b(M),y2:b(M),class:"td-slide-grid"})),k.append(ve(m-.5*a,
b(M)+.35*a,M.toLocaleString("en-US"),"end","td-slide-axis"));for(let M of u)k.append(ve(c(M),f-1.7*a,M.toLocaleString("en-US"),"middle","td-slide-axis"));k.append(
ve((m+h-p)/2,f-.4*a,g,"middle","td-slide-axis"));for(let M of[...n].sort((E,C)=>Number(C.curve)-Number(E.curve))){let E=M.x.map((R,D)=>c(R).toFixed(1)+","+b(M.y[D]).
toFixed(1)).join(" "),C={stroke:M.color,"stroke-width":(M.curve?.08:.1*M.width)*a,"stroke-dasharray":M.dash==="solid"?"none":M.dash};k.append(he("polyline",{points:E,
fill:"none","clip-path":"url(#"+d+")",...C}))}let T=M=>M.y.slice(-Math.ceil(M.y.length/5)),L=[...n.filter(M=>M.label).map(M=>({text:M.label,at:b(Math.min(s,T(M).
reduce((E,C)=>E+C,0)/T(M).length)),className:"td-slide-name arm-"+M.arm.toLowerCase()})),...o.map(({text:M,y:E})=>({text:M,at:b(E),className:"td-slide-axis td-s\
lide-bound"}))].sort((M,E)=>M.at-E.at),N=L.map(({at:M},E)=>M+(E&&E===L.length-1&&M-L[E-1].at<2.4*a?1.5:-.7)*a),A=yo(N,1.7*a,x+a,f-w-.4*a);L.forEach(({text:M,className:E},C)=>k.
append(ve(h-p,A[C],M,"end",E))),e.append(k)}function he(e,t){let n=document.createElementNS(xo,e);for(let[o,r]of Object.entries(t))n.setAttribute(o,String(r));return n}
function ve(e,t,n,o,r){let s=he("text",{x:e,y:t,"text-anchor":o,class:r});return s.textContent=Y(n),s}var bo=500;function sn(e,t,n,o){let r=M=>e.querySelector(".td-slide-"+M),s=r("page"),i=r("chart"),g=r("texts"),h=r("play"),f=r("back"),a=r("on"),l=matchMedia("(\
prefers-reduced-motion: reduce)"),u=!1,m=0,p=0,x=[],w=()=>settings.replays?window.tokendynoStory:null;function c(){e.open||!n()||(u=!1,e.showModal(),o.whole(),k(),
s.focus(),s.requestFullscreen?.().catch(()=>{}))}function b(){document.fullscreenElement===s&&document.exitFullscreen(),o.whole()}function k(){clearTimeout(p),p=
0,m=performance.now();let M=n(),E=w();if(!e.open)return;let C=M?.head.card,R=E?.chart??"latency",D=M?.head.figures??{},G=D[R]?R:"latency",Q=D[G]??{lead:"",figure:"",
tail:""},H=E?.title||M?.head.title||"";e.setAttribute("aria-label",H),_(r("title"),H),_(r("what"),M?[E?M.head.title:"",M.head.note].filter(Boolean).join(", "):"");
for(let $ of["lead","figure","tail"])_(r($),Q[$]);_(r("badge"),G==="latency"&&C&&!E?C.recommendation:""),_(r("claim"),E?"Claimed: "+E.claim:""),_(r("proof"),M?.
head.digest?(M.head.digest.status==="verified"?"✓ ":"")+M.head.digest.line:""),r("proof").className="td-slide-proof "+(M?.head.digest?.status??""),_(r("place"),
E?E.place+1+" of "+E.count:"");for(let[$,Te]of[[f,E?.before],[a,E?.after]])$.hidden=!Te,_($.querySelector("span"),Te?.title??"");e.classList.toggle("td-racing",
u),i.hidden=u,g.hidden=!u,r("curves").hidden=!u,M&&!u&&rn(i,on(settings.charts,G,M,C?.names??{})),M&&u&&v(M),d()}function d(){let{able:M,playing:E,clock:C}=o.state();
h.hidden=!M,_(h.querySelector("span"),u&&E?"Pause":"Play the race"),_(r("clock"),u?C:"")}function v({head:M,series:E}){x=M.arms.map((C,R)=>{let D=y("section","a\
rm-"+C.name.toLowerCase()),G=y("h3",""),Q=y("div","td-slide-text"),H=C.tiles.find($=>$.key==="rate");return G.append(y("span","td-arm",C.name),document.createTextNode(
" "+(M.card?.names[C.name]??C.label??""))),H&&H.value!=="n/a"&&G.append(y("small","",H.value+" "+H.unit)),Q.tabIndex=0,Q.setAttribute("role","region"),Q.setAttribute(
"aria-label","Text of arm "+C.name),D.append(G,Q),{pane:D,body:Q,whole:E[R].text}}).map(({pane:C,...R},D)=>(D||g.replaceChildren(),g.append(C),R)),g.style.setProperty(
"--arms",String(x.length)),T(o.state().at)}function T(M){let E=n();!E||!u||x.forEach(({body:C,whole:R},D)=>{let{t:G}=E.series[D],{pace:Q}=E.head.arms[D],H=M===null?
R.length:G.length?Qe(Q,G[0],M):0;_(C,R.slice(0,H).slice(-je)),C.scrollTop=C.scrollHeight})}function L(){if(!o.state().able)return;let M=!u;u=!0,M&&k(),(!M||!l.matches)&&
o.toggle(),d()}function N(M){let E=w(),C=E?.[M];!E||!C||(u=!1,E.open(C.name),s.focus())}function A(M){let E=M.target,C={ArrowLeft:-1,ArrowRight:1}[M.key];if(!(M.
key===" "&&E instanceof HTMLButtonElement&&E!==h)){if(M.key===" ")L();else if(C&&u)o.step(C);else if(["PageUp","ArrowLeft"].includes(M.key))N("before");else if([
"PageDown","ArrowRight"].includes(M.key))N("after");else if(M.key.toLowerCase()==="p"&&Ze(M))e.close();else return;M.preventDefault()}}return t.addEventListener(
"click",c),h.addEventListener("click",L),r("curves").addEventListener("click",()=>{u=!1,o.whole(),k(),s.focus()}),r("leave").addEventListener("click",()=>e.close()),
f.addEventListener("click",()=>N("before")),a.addEventListener("click",()=>N("after")),e.addEventListener("keydown",A),e.addEventListener("close",b),s.addEventListener(
"fullscreenchange",()=>{document.fullscreenElement!==s&&e.close()}),new ResizeObserver(k).observe(s),document.addEventListener("keydown",M=>{M.key.toLowerCase()!==
"p"||!Ze(M)||document.querySelector("dialog[open]")||!element.checkVisibility()||element.classList.contains("td-bare")||(M.preventDefault(),c())}),{draw:k,follow(){
e.open&&!u&&!p&&(p=setTimeout(k,Math.max(0,bo-(performance.now()-m))))},at(M){return e.open&&(T(M),d()),e.open},get open(){return e.open}}}var vo="Press Run: both arms write your prompt in turn, until it is decided which is faster. Texts, speed, memory and KV cache appear here as they are written, \
with proof that each choice took effect.",an=new URLSearchParams(location.search).get("pace"),Mo=75,Lo=60,cn=It(S(".td-plot"),S(".td-moments"),S(".td-noted"),settings.
charts),To={outliers:S(".td-outliers"),axes:S(".td-axis"),whole:S(".td-whole")},_o=Bt(S(".td-plot"),S(".td-fresh"),settings.charts),ee=Ut(S(".td-plot"),settings.
charts,To,cn,_o),He=Ht(S(".td-texts")),Fe=zt(S(".td-race"),S(".td-scrub"),S(".td-clock"),S(".td-speed"),He,(e,t)=>{De.at(e)||(ee.only(t),cn.pointAt(e))}),De=sn(
S(".td-slide"),S(".td-present"),()=>O&&{head:O,series:z,ended:le},Fe),dn=jt(S(".td-distribution"),S(".td-spread"),settings.fewest),fn=()=>O&&[O,z,ee.zoom],Le=Kt(
S(".td-progress")),tt=Xt(S(".td-sentence"),S(".td-basis"),S(".td-digest"),S(".td-unasked"),S(".td-gate"),S(".td-pays")),nt=Vt(S(".td-answer"),settings.links?Oo:
null),un=Jt(S(".td-quality")),pn=Gt(S(".td-tiles")),mn=Yt(S(".td-rows")),hn=Qt(S(".td-ledger")),gn=$e(S(".td-parts"),{of:e=>e.step,title:"Where the time of a st\
ep goes",hint:"the line under a part is the time that its bytes need",whole:"Measured",numbers:"Parts of a step as numbers",lacking:"Not traced: "}),xn=$e(S(".t\
d-start"),{of:e=>e.start,title:"From process to first token",whole:"Together",numbers:"Parts of a start as numbers"}),wn=en(S(".td-crossing")),z=[],O=null,J="",
ot=-1,kn=0,et=0,ge=!1,rt=!1,le=!1,Me=!1,ze=Ft(So,Eo,e=>_(S(".td-connection"),e));async function So(){let e=++kn,t=J,n=z.length?z.map(Ke):[[0,0,0],[0,0,0]];ge&&n.
forEach(s=>{s[2]=0});let o=Me&&!ge&&!rt?Lo:0,r=JSON.parse(await server.pull({run:t,version:ot,cur:n,wait_ms:o}));return r.seq=e,r}function Eo(e){if(e.error)return ut(
J,e.error),"over";if(e.run!==J||le)return le?"over":"wait";if(e.head&&e.seq>et&&(et=e.seq,Ao(e)),!O)return"wait";ft(e.status,e.queue),mt(e.trouble),ze.atLeast(e.
every_ms);let t=!1,n=!1;return e.lanes.forEach((o,r)=>{if(!z[r])return;ge&&o.cfirst===0&&yt(z[r],o);let s=kt(z[r],o);He.append(r,s.added),n=n||s.tokens>0||s.samples>
0,t=t||o.n-o.first>=settings.most}),rt=t,n&&(ee.grow(),dn.follow(fn),De.follow()),window.tokendynoProbe&&window.tokendynoProbe.arrived(z.map(o=>o.t.length)),e.ended?
ge?e.lanes.every(o=>o.cfirst===0)?(Co(e),"over"):"more":(ge=!0,"more"):t?"more":"wait"}function Ao(e){let t=!O;O=e.head,ot=e.version,t&&(z=O.arms.map(xt),He.build(
O.arms,O.unit),Le.build(O.arms),element.classList.toggle("single",O.arms.length===1),_(S(".td-empty-run"),""),fe(!1)),_(S(".td-title"),O.title),_(S(".td-note"),
O.note),Le.take(O),tt.take(O,e.status),nt.take(O.card),S(".td-verdict").classList.toggle("td-carded",!!O.card),_(S(".td-sure"),O.card?O.card.confidence:""),settings.
links&&window.tokendynoAddress?.title("compare",O.heading),un.take(O.quality),element.classList.toggle("td-reads",!!O.quality),pn.take(O.arms,O.differences),mn.
take(O.arms);let n=O.arms.filter(r=>r.spoilers.length).map(r=>r.name);_(S(".td-interference"),n.length?"▲ Possible interference ("+n.join(" and ")+")":""),Ge(
S(".td-annotations"),O.arms,O.unit),hn.take(O.arms,O.digest),gn.take(O.arms),xn.take(O.arms),wn.take(O),Zt(S(".td-remarks"),O.arms),ht(e.status,O.message)&&fe(!O.
arms.some(r=>r.prompt_tokens)),ee.take(O,z),yn(e.ended)}function yn(e){Me=!e&&(an?an==="quiet":O.quiet&&dt),ee.pace(...Me?[60,1e3,6e3]:[10,300,1e3]),ze.every(...Me?
[Mo,!0]:[60,!1])}async function ln(){let e=J;if(!(le&&!document.hidden&&O.verdict.gate&&!O.verdict.gate_run))return;let n=JSON.parse(await server.pull({run:e,version:-1,
cur:z.map(Ke),anew:!0}).catch(()=>"{}"));!n.head||e!==J||!le||(O.verdict=n.head.verdict,O.card=n.head.card,tt.take(O,n.status),nt.take(O.card))}function Co(e){le=
!0,yn(!0),Le.tick(z,!0),He.finish(z,O.texts),ee.end(),Fe.ready(O,z),element.dataset.status=e.status,element.dataset.over=e.run,trigger("finished",{run:e.run,status:e.
status}),De.draw(),settings.replays&&!De.open&&!matchMedia("(prefers-reduced-motion: reduce)").matches&&Fe.toggle()}function bn(e){if(J=e||"",z=[],O=null,ot=-1,
et=kn,ge=!1,rt=!1,le=!1,pt(J,["interference","sure"]),S(".td-verdict").classList.remove("td-carded"),element.classList.remove("td-reads"),settings.links&&window.
dispatchEvent(new Event("tokendyno-run")),settings.links&&window.tokendynoAddress?.title("compare",""),S(".td-texts").replaceChildren(),Ge(S(".td-annotations"),
[]),Fe.clear(),Le.clear(),tt.clear(),nt.clear(),un.clear(),pn.clear(),mn.clear(),hn.clear(),gn.clear(),xn.clear(),wn.clear(),ee.reset(J),_(S(".td-empty-run"),J||
!settings.links?"":[vo,settings.first].filter(Boolean).join(" ")),J||fe(!0),settings.links&&gt(J),!J){ze.stop();return}ze.begin()}function Oo(e){let t=o=>document.
querySelector(o);if(e.action==="run"){t("#run")?.click();return}let n="#code-"+e.arm.toLowerCase();t(n)?.scrollIntoView({block:"start"}),t(n+" button")?.focus({
preventScroll:!0})}function vn(){element.isConnected&&(O&&!le&&!document.hidden&&Le.tick(z),setTimeout(vn,Me?1e3:100))}dn.openOn(fn);S(".td-csv").addEventListener(
"click",()=>{O&&Ot(Ct(O,z),"tokendyno-"+J+".csv")});S(".td-png").addEventListener("click",()=>{O&&ee.picture("tokendyno-"+J)});Ce(()=>ee.touch());settings.links&&
(window.addEventListener("tokendyno-measured",ln),document.addEventListener("visibilitychange",ln));new ResizeObserver(()=>ee.touch()).observe(element);element.
classList.add("td-live");element.live={get series(){return z},get head(){return O}};watch("value",()=>{(props.value||"")!==J&&bn(props.value)});fe(!0);bn(props.
value);vn();})();
