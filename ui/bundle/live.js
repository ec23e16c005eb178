"use strict";(()=>{var ve=e=>{new MutationObserver(()=>e()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};function b(e,t,n){let o=document.createElement(e);return t&&(o.className=t),n!==void 0&&(o.textContent=n),o}function Me(e,t){let n=b("tr","");n.append(b("th","",
e),...t.map(o=>{let r=b("th","arm-"+o.name.toLowerCase());return r.append(b("span","td-arm",o.name)),r}));for(let o of n.querySelectorAll("th"))o.scope="col";return n}
function L(e,t){e.textContent!==t&&(e.textContent=t)}function T(e){return element.querySelector(e)}function z(e){return getComputedStyle(element).getPropertyValue(
e).trim()}function I(e){return e.toLocaleString("en-US")}function $(e){return e>=100?Math.round(e)+" s":e.toFixed(e>=10?1:2)+" s"}function Qe(e){return e>=4*2**
30?{unit:"GiB",scale:1/2**30}:e>=2*2**20?{unit:"MiB",scale:1/2**20}:{unit:"KiB",scale:1/1024}}var kn={queued:"Queued",running:"Running",done:"Done",failed:"Failed",cancelled:"Stopped",interrupted:"Interrupted"},Ye=/^(localhost|127(\.\d+){3}|\[::1\])$/.test(
location.hostname);function Ge(e,t){L(T(".td-status"),kn[e]||e),e==="queued"&&t&&L(T(".td-message"),t),element.dataset.status=e}function ae(e){element.classList.
toggle("td-bare",e)}function $e(e,t){for(let n of["status","empty-run"])L(T(".td-"+n),"");L(T(".td-failure"),t),ae(!0),trigger("finished",{run:e,status:"unknown"})}
function Ze(e,t){for(let n of["status","over"])delete element.dataset[n];element.dataset.run=e;for(let n of["status","title","note","failure","message","connect\
ion","unkept",...t])L(T(".td-"+n),"");T(".td-remarks").replaceChildren(),delete T(".td-remarks").dataset.shown}function et(e){L(T(".td-unkept"),e?"▲ "+e:"")}function tt(e,t){
let n=e==="failed"||e==="interrupted";return L(T(".td-failure"),n?t||"The run ended unexpectedly.":""),L(T(".td-message"),n?"":t),n}function Te(e){return T(e)}function nt(e){
if(T(".td-link").hidden=T(".td-files").hidden=!e,!e)return;let t=new URL(location.href);t.search="?"+new URLSearchParams({run:e}),t.hash="",Te(".td-permalink").
href=t.href,L(T(".td-permalink"),t.search),Te(".td-kept").href="?"+new URLSearchParams({view:"history",q:e}),T(".td-kept").hidden=e.startsWith("recorded-");for(let r of[
"dyno","html","json"])Te(".td-file-"+r).href="files/"+encodeURIComponent(e)+"."+r;T(".td-file-html").hidden=!T(".td-plot");let n=new URL(location.href),o=n.searchParams.
get("view")||window.tokendynoAddress?.page;if(o&&o!=="compare"&&o!=="batching"){window.tokendynoAddress?.note(element.closest("#batch-live")?"batching":"compare",
e);return}n.searchParams.set("run",e);for(let r of["worth","sweep"])n.searchParams.delete(r);n.href!==location.href&&history.replaceState(history.state,"",n.href)}
async function yn(){let{href:e}=Te(".td-permalink");try{await navigator.clipboard.writeText(e),L(T(".td-copied"),"Copied")}catch{window.prompt("Copy this link:",
e)}setTimeout(()=>L(T(".td-copied"),""),2e3)}T(".td-copy").addEventListener("click",yn);var _e=["t","lat","kvs","kvf"];function ot(){return{t:[],lat:[],kvs:[],kvf:[],st:[],sm:[],text:"",chars:0}}function Oe(e){return[e.t.length,e.st.length,e.chars]}
function rt(e){return Object.fromEntries([..._e,"st","sm"].map(t=>[t,e[t].length]))}function st(e,t){let n={tokens:0,samples:0,added:""},o=e.t.length;if(t.first<=
o&&t.n>o){for(let s of _e){let i=e[s],x=t[s];for(let w=o-t.first;w<x.length;w++)i.push(x[w])}n.tokens=t.n-o}let r=e.st.length;if(t.sfirst<=r&&t.sn>r){for(let s=r-
t.sfirst;s<t.st.length;s++)e.st.push(t.st[s]),e.sm.push(t.sm[s]);n.samples=t.sn-r}if(t.cfirst<=e.chars&&t.cn>e.chars){let s=e.chars-t.cfirst;n.added=s?Array.from(
t.text).slice(s).join(""):t.text,e.text+=n.added,e.chars=t.cn}return n}function at(e,t){e.text=t.text,e.chars=t.cn}function it(e,t){let n=Math.min(e.length,t.length);
for(let o=0;o<n;o++)if(e.charCodeAt(o)!==t.charCodeAt(o))return o;return-1}function q(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<t?n=r+1:o=r}return n}function lt(e,t,n,o){let r=Math.max(0,n-t);if(r<=o)return Array.from({length:r},
(i,x)=>t+x);let s=2;for(;s*(o/2-2)<r;)s*=2;for(;;){let i=bn(e,t,n,s);if(i.length<=o)return i;s*=2}}function bn(e,t,n,o){let r=[t];for(let s=t-t%o;s<n;s+=o){let i=Math.
max(s,t),x=Math.min(s+o,n),w=[];for(let d of e){let l=Math.min(x,d.length);if(i>=l)continue;let a=i,f=i;for(let u=i+1;u<l;u++)d[u]<d[a]?a=u:d[u]>d[f]&&(f=u);w.push(
a,f)}w.sort((d,l)=>d-l);for(let d of w)d>r[r.length-1]&&r.push(d)}return r[r.length-1]!==n-1&&r.push(n-1),r}function Z(e,t,n){return e.at==="sample"?t==="second"?o=>n.st[o]:o=>le(n.t,n.st[o]):t==="second"?o=>n.t[o]:o=>o}function Le(e,t,n,[o,r]){if(e.at==="sample"){let[
s,i]=t==="second"?[o,r]:[ie(n.t,o),ie(n.t,r)];return[q(n.st,s),q(n.st,i)]}return t==="second"?[q(n.t,o),q(n.t,r)]:[Math.floor(o),Math.ceil(r)]}function Pe([e,t],n,o){
let r=o.filter(i=>i.t.length);if(!r.length)return null;let s=r.map(({t:i})=>n==="second"?[ie(i,e),ie(i,t)]:[le(i,e),le(i,t)]);return[Math.min(...s.map(i=>i[0])),
Math.max(...s.map(i=>i[1]))]}function ct(e,{t},n){return!t.length||n>t[t.length-1]?null:e==="second"?n:n<t[0]?null:q(t,n)}function ie(e,t){if(!e.length)return 0;
let n=e.length-1,o=Math.min(n,Math.max(0,t)),r=Math.floor(o);return r===n?e[n]:e[r]+(o-r)*(e[r+1]-e[r])}function le(e,t){let n=q(e,t);return n===0?0:n>=e.length?
e.length-1:n-1+(t-e[n-1])/(e[n]-e[n-1])}var vn=.98,Mn=2,Tn=1.5,_n=20;function Ae(e,t){let n=Float64Array.from(e.flatMap(s=>s.slice(t))).sort();if(n.length<_n)return null;
let o=n[Math.floor(vn*(n.length-1))];return n[n.length-1]>Mn*o?Tn*o:null}var ft=[{color:"#4269d0",dash:"solid"},{color:"#ff725c",dash:"5px,2.5px"},{color:"#3ca951",dash:"10px,3px"},{color:"#a463f2",dash:"9px,3px,2px,3px"},{color:"#9c\
6b4e",dash:"4px,2px,1px,2px,1px,2px"}];function ee(e,t){return ft[(e.line??t)%ft.length]}var dt="1px,3px",Ln=400;function ut(e,t){return e.flatMap((n,o)=>{let r={
xaxis:"x"+U(o),yaxis:"y"+U(o),type:"scatter",mode:"lines"};if(!t.head)return[{...r,x:[0,1],y:[0,1],line:{width:0},hoverinfo:"skip",showlegend:!1}];let s=t.part?
{...t,series:t.part}:t,i=me(n,t),x=Sn(n,o,r,i,s);return n.annotations&&x.push(...gt(n,r,s)),t.tops&&t.tops[o]!==null&&x.push(...On(n,o,r,s)),x.push(Nn(n,o,r,t)),
x.concat(Rn(n,o,r,i,t))})}function U(e){return e?e+1:""}function V(e){return e.replace(/[<>&]/g,"")}function W(e,t){return t.unit==="forward"?0:e.first}function J(e){
return e.lines.filter(t=>!t.curve)}function Ne(e,t,{head:n,series:o,axis:r,zoom:s}){let i=W(e[0],n),x=t.flatMap(l=>e.map(a=>o[l][a.column])),w=i,d=Math.max(0,...x.
map(l=>l.length));if(s){let[l,a]=Le(e[0],r,o[t[0]],s);w=Math.max(w,l-1),d=Math.min(d,a+2)}return lt(x,w,d,Ln)}function Re(e,t,{head:n,series:o}){return e.curve?
n.arms[t][e.curve]:o[t]}function pt(e,t){let n=0;for(let o of e.lines)t.series.forEach((r,s)=>{let i=Re(o,s,t);if(i)for(let x of i[o.column])x>n&&(n=x)});return n}
function An(e,{series:t}){let n=1/0;for(let o of J(e))for(let r of t)for(let s of r[o.column])s<n&&(n=s);return n<1/0?n:0}function mt(e,t,n){return e.unit!=="by\
tes"?{unit:e.unit,scale:1}:n||Qe(pt(e,t))}function me(e,t){let n=o=>t.series.some((r,s)=>{let i=Re(o,s,t),x=i&&i[o.column];return x&&x.length&&x[x.length-1]>0});
return[...new Set(e.lines.filter(o=>o.kind&&n(o)).map(o=>o.kind))]}function Sn(e,t,n,o,r){let{head:s,series:i,hidden:x,axis:w,ended:d}=r,{scale:l}=r.units[t],a=[],
f=J(e),u=i.map((g,k)=>k),h=f[0].at==="token"&&w==="token"?u.map(()=>Ne(f,u,r)):u.map(g=>Ne(f,[g],r)),m=(g,k,y,c)=>{let v=s.arms[k].name,M=ee(s.arms[k],k);a.push(
{...n,x:y,y:c,name:V([v,g.kind,g.label].filter(Boolean).join(" ")),showlegend:!1,hoverinfo:"skip",visible:![v,g.kind,g.label].some(_=>_&&x.has(_)),meta:{chart:e.
key,arm:v,kind:g.kind,curve:g.curve},line:{width:g.width,color:M.color,dash:g.curve?dt:M.dash},opacity:g.curve?.9:1})};for(let g of e.lines)for(let k of u){if(g.
kind&&!o.includes(g.kind))continue;let y=Re(g,k,r),c=g.scale*l;if(!y)continue;let v=y[g.column];if(g.curve&&g.at==="sample"){let _=w==="second"?y.x:y.x.map(E=>E===
null?null:le(i[k].t,E));m(g,k,_,v.map(E=>E===null?null:E*c));continue}if(g.curve){let _=Ie(g,s.arms[k]),{t:E}=i[k];if(w==="token"){let R=d?Math.max(...i.map(D=>D.
t.length))-1+_:1/0,X=Cn(y.x,R);m(g,k,X.map(D=>D-_),X.map(D=>pe(y.x,v,D)*c));continue}let P=Ne(En,[k],r).filter(R=>R+_>=y.x[0]);m(g,k,P.map(R=>E[R]),P.map(R=>pe(
y.x,v,R+_)*c));continue}let M=h[k].filter(_=>_<v.length);m(g,k,M.map(Z(g,w,y)),M.map(_=>v[_]*c))}return a}var En=[{at:"token",column:"lat",first:0,scale:1,kind:"",
width:1,curve:"",label:""}];function Ie(e,t){return e.at==="length"?t.prompt_tokens:0}function Cn(e,t){let n=e.filter(o=>o<=t);return n.length&&n.length<e.length&&
n[n.length-1]<t?[...n,t]:n}function pe(e,t,n){let o=q(e,n);return o===0||o>=e.length?t[o?e.length-1:0]:t[o-1]+(t[o]-t[o-1])*(n-e[o-1])/(e[o]-e[o-1])}function On(e,t,n,o){
let{head:r,series:s,hidden:i,axis:x,tops:w}=o,{unit:d,scale:l}=o.units[t],[a]=J(e);return r.arms.map((f,u)=>{let p=s[u][a.column],h=a.scale*l,m=[];for(let g=W(a,
r);g<p.length;g++)p[g]*h>w[t]&&m.push(g);return{...n,mode:"markers",x:m.map(Z(a,x,s[u])),y:m.map(()=>.985*w[t]),showlegend:!1,visible:!i.has(f.name),cliponaxis:!1,
marker:{symbol:"triangle-up"+(u%2?"-open":""),size:7,color:ee(r.arms[u],u).color},hoverinfo:"skip",text:m.map(g=>(p[g]*h).toPrecision(3)+" "+d),meta:{chart:e.key,
outliers:f.name}}})}function ht(e,t,{head:n,series:o,ended:r,axis:s,zoom:i,units:x},w){let d=e.lines.find(y=>y.curve==="floor"),l=n.arms.map((y,c)=>[y,o[c]]),a=d?
l.filter(([{floor:y}])=>y&&y[d.column].length):[];if(!a.length)return[];let{unit:f,scale:u}=x[t],p=a.map(([{floor:y},{t:c}])=>{let v=i?i[1]:r&&s==="token"?Math.
max(...o.map(_=>_.t.length))-1:1/0,M=s==="second"?le(c,v):v;return pe(y.x,y[d.column],M)*d.scale*u}),h=p.map(y=>Number(y.toPrecision(3))),g=Math.max(...p)<1.1*Math.
min(...p)?h[0]:a.map(([y],c)=>V(y.name)+" "+h[c]).join(", "),k=a.filter(([{floor:y}])=>y.exchanges).map(([{name:y,floor:c}])=>", exchanges of "+V(y)+" "+c.exchanges).
join("");return[{text:"roofline bound "+g+" "+f+k,showarrow:!1,xref:"x"+U(t)+" domain",yref:"y"+U(t),x:1,y:Math.max(...p),xanchor:"right",yanchor:"bottom",font:{
size:10,color:w}}]}var Pn=.25;function Nn(e,t,n,o){let{head:r,series:s,ended:i,axis:x}=o,{scale:w}=o.units[t],d=[0,Math.max(1,i?Math.max(...s.map(h=>h.t.length)):
r.max_new_tokens)];if(x==="second"){let h=Math.max(0,...s.flatMap(({t:g,st:k})=>[g,k].filter(y=>y.length).map(y=>y[y.length-1]))),m=10**Math.floor(Math.log10(Math.
max(1,h)));d=[0,i?h:Math.ceil((h+m/10)/m)*m]}let l=e.unit==="bytes"?pt(e,o)*w:0,a=e.min_span*l,f=e.from_zero?0:An(e,o)*w,u=i?l:l+Pn*(l-f),p=[f-a/4,Math.max(u,f+
3*a/4)];return{...n,x:d,y:p,line:{width:0},hoverinfo:"skip",showlegend:!1,meta:{chart:e.key,extent:!0}}}function Rn(e,t,n,o,{head:r,hidden:s,neutral:i}){let x=(a,f,u)=>({
...n,x:[null],y:[null],name:V(a),line:f,legend:u,showlegend:!0,hoverinfo:"skip",visible:s.has(a)?"legendonly":!0,meta:{legend:a}}),w="legend"+U(t),d=t?[]:r.arms.
map((a,f)=>x(a.name,{width:2,...ee(r.arms[f],f)},w));for(let a of o){let{width:f}=J(e).find(u=>u.kind===a);d.push(x(a,{width:f,color:i},w))}let l=a=>a.curve&&(!a.
kind||o.includes(a.kind))&&r.arms.some(f=>f[a.curve]);for(let a of new Set(e.lines.filter(l).map(f=>f.label)))d.push(x(a,{width:1.2,color:i,dash:dt},w));return d}var wt={compile:["diamond","◆"],recompile:["diamond","◆"],graph_skip:["x","✕"],window:["triangle-down","▼"],cache:["square","■"],gc:["circle","●"],throttle:[
"star","★"],foreign:["cross","✚"]},xt=3;function gt(e,t,{head:n,series:o,hidden:r,axis:s,ink:i}){let x=J(e)[0],w=W(x,n),d=[];return n.arms.forEach((l,a)=>{let f=o[a][x.
column],u=new Map(l.marks.filter(({token:m})=>m>=w&&m<f.length).reverse().map(m=>[m.token,m.kind]));if(!u.size)return;let p=[...u.keys()].sort((m,g)=>m-g),h=p.map(
m=>wt[u.get(m)][0]);d.push({...t,mode:"markers",x:p.map(Z(x,s,o[a])),y:p.map(m=>f[m]*x.scale),marker:{symbol:h.map(m=>m+(a%2?"-open":"")),size:9,color:i,line:{width:1.2,
color:i}},hoverinfo:"skip",showlegend:!1,visible:!r.has(l.name),meta:{chart:e.key,annotations:l.name}})}),d}function Be(e,t,n){let o=JSON.stringify(t.map(s=>s.marks));
if(e.dataset.shown===o)return;e.dataset.shown=o;let r=s=>(n==="forward"?"pass ":"token ")+I(s.token)+": "+s.text;e.title=t.flatMap(s=>s.marks.map(i=>s.name+" "+
r(i))).join(`
`),e.replaceChildren(...t.filter(s=>s.marks.length).map(s=>{let i=b("span","td-annotation arm-"+s.name.toLowerCase());i.append(b("span","td-arm",s.name));let x=s.
marks.slice(0,xt).map(d=>wt[d.kind][1]+" "+r(d)),w=s.marks.length-xt;return i.append(document.createTextNode(x.join(", ")+(w>0?" and "+I(w)+" more":""))),i}))}var In=["arm","series","index","seconds","latency_s","kv_sliding_bytes","kv_full_bytes","memory_bytes"];function kt(e,t){let n=[In.join(",")],o=e.unit==="forwar\
d"?"pass":"token";return e.arms.forEach(({name:r},s)=>{let{t:i,lat:x,kvs:w,kvf:d,st:l,sm:a}=t[s];i.forEach((f,u)=>n.push([r,o,u,f,x[u],w[u],d[u],""].join(","))),
l.forEach((f,u)=>n.push([r,"sample",u,f,"","","",a[u]].join(",")))}),n.join(`
`)+`
`}function yt(e,t){let n=document.createElement("a");n.href=URL.createObjectURL(new Blob([e],{type:"text/csv"})),n.download=t,n.click(),setTimeout(()=>URL.revokeObjectURL(
n.href),1e4)}function Bn(e,t,n,o){let{t:r,st:s}=n;if(e.at==="sample"){let x=t.second??(t.token<r.length?ie(r,t.token):1/0),w=q(s,x);return!s.length||x>Math.max(s[s.length-1],
r.length?r[r.length-1]:0)?null:w>0&&(w>=s.length||x-s[w-1]<s[w]-x)?w-1:w}let i=t.token??q(r,t.second);return i>=o&&i<r.length?i:null}function te(e){return e.toLocaleString(
"en-US",{maximumSignificantDigits:4})}function Un({x:e},t,n){let o=[],r=null;return e.forEach((s,i)=>{s===null?(o.push(t[r]),r=null):(r===null||Math.abs(s-n)<Math.
abs(e[r]-n))&&(r=i)}),o}function bt(e,t,n,o){let{head:r,series:s,hidden:i}=o,{unit:x,scale:w}=o.units[t],d=me(e,o),l=p=>!p.kind||d.includes(p.kind),[a]=e.lines.
filter(p=>!p.curve),f=J(e).filter(l),u=e.lines.filter(p=>p.curve&&p.at!=="sample"&&l(p));return r.arms.flatMap((p,h)=>{let m=Bn(a,n,s[h],W(a,r));if(m===null||i.
has(p.name)||!f.length)return[];let g=f.map(c=>s[h][c.column][m]*c.scale*w),k=[g.map((c,v)=>te(c)+(f.length>1?" "+f[v].kind:"")).join(" + ")+" "+x],y=u.filter(c=>p[c.
curve]);if(y.length){let c=y.reduce((M,_)=>M+pe(p[_.curve].x,p[_.curve][_.column],m+Ie(_,p))*_.scale*w,0),v=Math.abs(c-g.reduce((M,_)=>M+_,0))<5e-4*c;k.push(y[0].
curve==="floor"?"roofline bound "+te(c):v?"as predicted":"predicted "+te(c))}for(let c of e.lines.filter(v=>v.curve&&v.at==="sample"&&p[v.curve])){let v=Un(p[c.
curve],p[c.curve][c.column],s[h].st[m]);k.push(c.label+" "+v.map(M=>te(M*c.scale*w)).join(", "))}return a.at==="token"&&n.token===void 0&&k.push(Se(r)+" "+I(m)),
e.lines.some(c=>c.at==="length")&&k.push(I(p.prompt_tokens+m)+" tokens cached"),[{arm:p.name,text:k.join(", ")}]})}function Se(e){return e.unit==="forward"?"pas\
s":"token"}function vt(e,t,n,o,{head:r,series:s,hidden:i,axis:x,units:w,tops:d}){let[l]=J(e),a=W(l,r),f=d[t]===null?1/0:d[t]/l.scale/w[t].scale,u=null,p=o;return e.
annotations&&r.arms.forEach((h,m)=>{if(i.has(h.name))return;let g=s[m][l.column],k=new Set(h.marks.map(M=>M.token)),y=Z(l,x,s[m]),[c,v]=Le(l,x,s[m],[n-o,n+o]);for(let M=Math.
max(a,c);M<=Math.min(v,g.length-1);M++){let _=Math.abs(y(M)-n);_<=p&&(k.has(M)||g[M]>f)&&(p=_,u=y(M))}}),x==="second"?{second:Math.max(0,u??n)}:{token:u??Math.max(
0,Math.round(n))}}function Mt(e,{head:t,series:n,hidden:o}){return t.arms.flatMap((r,s)=>{let i=e.token??q(n[s].t,e.second);return o.has(r.name)?[]:r.marks.filter(
x=>x.token===i&&i<n[s].t.length).map(x=>r.name+" "+Se(t)+" "+I(i)+": "+x.text)})}var qn=5;function Tt(e,t,n,o){let r=null,s=null,i=null,x=h=>[e._fullLayout["xaxis"+U(h)],e._fullLayout["yaxis"+U(h)]];function w(h){let m=e.getBoundingClientRect(),
g=h.clientX-m.left,k=h.clientY-m.top;for(let y=0;y<o.length;y++){let[c,v]=x(y);if(g<c._offset||g>c._offset+c._length||k<v._offset||k>v._offset+v._length)continue;
let M=g-c._offset;return{i:y,x:c.p2l(M),reach:Math.abs(c.p2l(M+qn)-c.p2l(M))}}return null}function d(h){let m=i&&i.head&&e._fullLayout?w(h):null;r=m&&vt(o[m.i],
m.i,m.x,m.reach,i),p()}function l(){r&&(r=null,p())}function a(h,m,g){let[k,y]=x(h);if(m===null||m<k.range[0]||m>k.range[1])return[];let c=b("i","td-moment "+g);
return Object.assign(c.style,{left:k._offset+k.l2p(m)+"px",top:y._offset+"px",height:y._length+"px"}),[c]}function f(h,m,g){let[k,y]=x(h),c=b("span","td-place",
g),v=Math.min(k._length,Math.max(0,k.l2p(m)));return Object.assign(c.style,{left:k._offset+v+"px",top:y._offset+y._length+1+"px",transform:"translateX(-"+100*v/
k._length+"%)"}),c}function u(h,m){let g=bt(o[h],h,m,i),[k,y]=x(h);if(!g.length)return[];let c=b("div","td-readout");Object.assign(c.style,{left:k._offset-4+"px",
width:k._length+8+"px",bottom:"calc(100% - "+y._offset+"px)"}),i.titles[h]&&c.append(b("strong","",i.titles[h]));for(let{arm:v,text:M}of g){let _=b("span","arm-"+
v.toLowerCase());_.append(b("b","td-arm",v),document.createTextNode(M)),c.append(_)}return[c]}function p(){let h=r||(s===null?null:{second:s}),m=[],g=h&&i&&i.head&&
e._fullLayout&&e._fullLayout.xaxis;g&&o.forEach((y,c)=>{if(!i.series.some(M=>M.t.length||M.st.length))return;let v=r?r.token??r.second:i.axis==="second"?s:null;
r?m.push(...a(c,v,"")):i.series.forEach((M,_)=>m.push(...a(c,ct(i.axis,M,s),"arm-"+i.head.arms[_].name.toLowerCase()))),v!==null&&m.push(f(c,v,i.axis==="second"?
$(v):Se(i.head)+" "+I(v))),m.push(...u(c,h))}),t.replaceChildren(...m);let k=g?Mt(h,i):[];n.hidden=!k.length,n.replaceChildren(...k.map(y=>b("span","",y)))}return e.
addEventListener("pointermove",d),e.addEventListener("pointerdown",h=>h.pointerType==="touch"?d(h):l()),e.addEventListener("pointerleave",l),{take(h){i=h,(r||s!==
null)&&p()},pointAt(h){s=h,p()},clear(){r=null,s=null,i=null,p()}}}function _t(e,t,n){let o=null,r=[];function s(){o=null,r=[],t.replaceChildren()}function i(a,f){s(),a.head&&(o=a,r=n.map((u,p)=>w(u,p,f)),d())}function x(a){return o&&
(o={...o,series:a}),d()}function w(a,f,u){let p=e._fullLayout["xaxis"+U(f)],h=e._fullLayout["yaxis"+U(f)],m=window.devicePixelRatio,g=b("canvas",""),k=g.getContext(
"2d"),y=me(a,o);g.width=Math.ceil(p._length*m),g.height=Math.ceil(h._length*m),Object.assign(g.style,{left:p._offset+"px",top:h._offset+"px",width:p._length+"px",
height:h._length+"px"}),k.scale(m,m),t.append(g);let c=J(a).filter(v=>!v.kind||y.includes(v.kind)).flatMap(v=>o.series.map((M,_)=>({line:v,a:_,next:Math.max(W(v,
o.head),u[_][v.column]-1),drawnPx:0,shown:![o.head.arms[_].name,v.kind].some(E=>E&&o.hidden.has(E))})));return{x:p,y:h,pen:k,lines:c,scale:o.units[f].scale}}function d(){
return o?r.map(l).some(Boolean):!1}function l({x:a,y:f,pen:u,lines:p,scale:h}){let m=!1;for(let g of p){let{line:k,a:y}=g,c=o.series[y][k.column],v=c.length;if(!g.
shown||v-g.next<2)continue;let M=Z(k,o.axis,o.series[y]),_=ee(o.head.arms[y],y),E=a.l2p(M(g.next)),P=f.l2p(c[g.next]*k.scale*h),R=g.drawnPx;u.beginPath(),u.moveTo(
E,P);for(let X=g.next+1;X<v;X++){let D=a.l2p(M(X)),F=f.l2p(c[X]*k.scale*h);u.lineTo(D,F),R+=Math.hypot(D-E,F-P),E=D,P=F,m=m||a.autorange&&E>a._length||f.autorange&&
(P<0||P>f._length)}u.strokeStyle=_.color,u.lineWidth=k.width,u.setLineDash(_.dash==="solid"?[]:_.dash.split(",").map(parseFloat)),u.lineDashOffset=g.drawnPx,u.stroke(),
g.next=v-1,g.drawnPx=R}return m}return{take:i,follow:x,draw:d,clear:s}}function oe(){return window.Plotly?Promise.resolve():window.tokendynoPlotly??=new Promise(e=>{let t=()=>{let n=document.createElement("script");n.src=settings.plotly,
n.addEventListener("load",()=>e()),n.addEventListener("error",()=>{n.remove(),setTimeout(t,1e3)}),document.head.append(n)};t()})}var jn=760,Fn=250,Dn=420,zn=40,Hn=()=>Math.round(Math.min(420,Math.max(200,.26*window.innerHeight))),Xn={responsive:!0,displaylogo:!1,showTips:!1,showSendToCloud:!1,
displayModeBar:!1};function Lt(e,t,n,o,r){let s="",i=null,x=[],w=null,d=[],l=[],a=[],f=new Set,u=!1,p=0,h="token",m=null,g=0,k=!1,y=!1,c=!1,v=!1,M=!0,_=!1,E=0,P=0,
R=10,X=300,D=1e3,F=[],Xe=[];function an(A){A&&gn(),s=A,i=null,x=[],w=null,d=[],f=new Set,u=!1,M=!0,m=null,k=!1,o.clear(),r.clear()}function ln(A){t.forEach((O,N)=>{
let C="xaxis"+U(N),B=A[C+".range"]||[A[C+".range[0]"],A[C+".range[1]"]];A[C+".autorange"]?m=null:i&&B[0]!==void 0&&(m=B.map(Number))}),fe()}function fe(){M=!0,se(
!0)}function cn(A){A!==h&&(h=A,m=m&&Pe(m,h,x),fe())}function fn(A,O){if(!i||k||A.unit!=="ms")return null;let[N]=J(A),C=Ae(x.map(B=>B[N.column]),W(N,i));return C===
null?null:C*N.scale*d[O].scale}function dn(A,O){if(!i||!w||A.unit!=="ms")return null;let[N]=J(A),C=W(N,i),B=x.reduce((ne,we)=>we[N.column].slice(C).reduce((Y,G)=>Math.
max(Y,G),ne),0);return B?1.05*B*N.scale*d[O].scale:null}function un(){let A={head:i,series:x,part:w,ended:u,hidden:f,axis:h,zoom:m,units:d,ink:z("--body-text-co\
lor"),neutral:z("--body-text-color-subdued")};d=t.map((C,B)=>i?mt(C,A,m&&d[B]):null),l=t.map(fn),n.outliers.hidden=!k&&l.every(C=>C===null),n.outliers.setAttribute(
"aria-pressed",String(k)),L(n.outliers,k?"Cut outliers off":"Show outliers in full"),n.whole.hidden=m===null;for(let C of n.axes.querySelectorAll("button"))C.setAttribute(
"aria-pressed",String(C.dataset.axis===h));L(n.axes.firstElementChild,i&&i.unit==="forward"?"Passes":"Tokens");let O=ut(t,{...A,units:d,tops:l}),N=O.filter(C=>!C.
meta?.extent&&C.y.some(Number.isFinite)).map(C=>C.yaxis);return a=t.map((C,B)=>!w&&!N.includes("y"+U(B))),O}function pn(){let A=element.clientWidth<jn,O=t.length,
N=A?.13:.05,C=(1-N*(O-1))/O,B=element.clientWidth*(A?1:C)<Dn,ne=z("--body-text-color"),we=z("--border-color-primary"),Y={uirevision:s+"/"+g,datarevision:++p,paper_bgcolor:"\
rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:ne,size:11,family:z("--font")||"sans-serif"},height:A?Fn*O:Hn(),margin:{t:B?56:36,b:34,l:44,r:8,autoexpand:!1},
hovermode:!1,dragmode:"zoom",annotations:[]};return t.forEach((G,K)=>{let ke=K*(C+N),de=A?[0,1]:[ke,ke+C],ue=A?[1-ke-C,1-ke]:[0,1],Je=G.unit==="bytes"?d[K]&&d[K].
unit:G.unit,ye=i&&i.unit==="forward"&&G.encoder||G,be=V(ye.title||(i?i.memory_label:"memory")).slice(0,zn),Ke=l[K]??dn(G,K);Xe[K]=B?"":be[0].toUpperCase()+be.slice(
1);let Ve={gridcolor:we,zeroline:!1,linecolor:we,ticks:"",automargin:!1,showticklabels:!!i&&!ye.note};Y["xaxis"+U(K)]={...Ve,domain:de,anchor:"y"+U(K),uirevision:[
s,g,h].join("/"),...m?{range:[...m],autorange:!1}:{},title:{text:h==="second"?"seconds":i&&i.unit==="forward"?"forward pass":"token",standoff:2},nticks:6},Y["ya\
xis"+U(K)]={...Ve,domain:ue,anchor:"x"+U(K),rangemode:G.from_zero?"tozero":"normal",nticks:6,tickformat:",~r",...Ke===null?{}:{range:[0,Ke],autorange:!1},...a[K]?
{showticklabels:!1}:{}},i&&Y.annotations.push(...ht(G,K,{head:i,series:x,ended:u,axis:h,zoom:m,units:d},ne)),Y.annotations.push({text:"<b>"+be[0].toUpperCase()+
be.slice(1)+"</b>"+(Je?", "+Je:""),showarrow:!1,xref:"paper",yref:"paper",x:de[0],y:ue[1],xanchor:"left",yanchor:"bottom",yshift:B?32:4,xshift:-4,font:{size:12}}),
ye.note&&Y.annotations.push({text:V(ye.note),showarrow:!1,xanchor:"center",xref:"paper",yref:"paper",x:(de[0]+de[1])/2,y:(ue[0]+ue[1])/2});let wn={orientation:"\
h",x:de[B?0:1],y:ue[1],xanchor:B?"left":"right",yanchor:"bottom",bgcolor:"rgba(0,0,0,0)",font:{size:11},itemwidth:30};Y["legend"+U(K)]=wn}),Y}async function se(A){
if(!c||!M||_||document.hidden||!A&&performance.now()<E||!element.offsetParent)return;M=!1;let O=performance.now(),N=w||x,C=N.map(rt),B=un(),ne={head:i,series:x,
hidden:f,axis:h,units:d,tops:l,titles:Xe};_=!0;try{await Plotly.react(e,B,pn(),Xn)}finally{_=!1}xn(),ne.series===x&&(o.take(ne),r.take({...ne,series:N},C)),requestAnimationFrame(
()=>setTimeout(()=>{F.push(performance.now()-O),F.length>5&&F.shift(),P=performance.now()+X,E=performance.now()+Math.max(X,Math.min(D,Math.min(...F)*R)),window.
tokendynoProbe&&window.tokendynoProbe.painted(F[F.length-1])},0)),We()}function mn(){M=!0,r.draw()&&(E=Math.min(E,P)),We()}function We(){if(!window.tokendynoProbe||
_||!i)return;let A=x.map(O=>O.t.length);requestAnimationFrame(()=>setTimeout(()=>window.tokendynoProbe.shows(A),0))}function hn(A){let O=A.data[A.curveNumber].meta.
legend;return f.delete(O)||f.add(O),fe(),!1}async function gn(){y||(y=!0,await oe(),c=!0,setInterval(()=>{element.isConnected&&se(!1)},33),se(!0))}function xn(){
if(!v){v=!0,e.on("plotly_relayout",ln),e.on("plotly_legendclick",hn),e.on("plotly_legenddoubleclick",()=>!1),n.outliers.addEventListener("click",()=>{k=!k,fe()});
for(let A of n.axes.querySelectorAll("button"))A.addEventListener("click",()=>cn(A.dataset.axis));n.whole.addEventListener("click",()=>{m=null,g++,fe()})}}return{
reset:an,take(A,O){i=A,x=O,M=!0},end(){u=!0,M=!0,se(!0)},async picture(A){return await oe(),Plotly.downloadImage(e,{format:"png",filename:A,scale:2,width:e.clientWidth,
height:e.clientHeight})},get zoom(){return m&&(h==="token"?m:Pe(m,"token",x))},grow:mn,only(A){if(w===A)return;let O=w&&A&&A.every((N,C)=>N.t.length>=w[C].t.length);
w=A,M=!0,O&&r.follow(A)&&(E=Math.min(E,P)),se(!O)},touch(){M=!0,se(!1)},pace(A,O,N){R=A,X=O,D=N}}}var Wn=10,Jn=60,Ue=200,At=[["Shortest",0],["10%",.1],["Median",.5],["90%",.9],["99%",.99],["Longest",1]];function he(e,t){return e[Math.max(0,Math.ceil(Number((t*
e.length).toFixed(9)))-1)]}function Kn(e,t,n){let o=W({first:1},e);return t.map(({lat:r})=>Float64Array.from(r.slice(Math.max(o,n?Math.ceil(n[0]):0),n?Math.floor(
n[1])+1:r.length)).sort())}function Vn(e){let t=e.filter(d=>d.length),n=Math.min(...t.map(d=>d[0])),o=Ae(t.map(d=>[...d]),0)??Math.max(...t.map(d=>d[d.length-1])),
r=t.map(d=>2*(he(d,.75)-he(d,.25))/Math.cbrt(d.length)).filter(d=>d>0),s=Math.round(Math.min(Jn,Math.max(Wn,r.length?(o-n)/Math.min(...r):0))),i=o>n?(o-n)/s:Math.
max(1e-9,.01*n),x=Array.from({length:s+1},(d,l)=>n+l*i),w=e.map(()=>new Array(s).fill(0));return e.forEach((d,l)=>{for(let a of d)a<=o&&w[l][Math.min(s-1,Math.floor(
(a-n)/i))]++}),{edges:x,shares:w.map((d,l)=>d.map(a=>a/Math.max(1,e[l].length))),beyond:e.map(d=>d.length-q(d,o*(1+1e-12)))}}function Qn(e,t){let n=[];for(let o=0;o<=
Ue&&e.length;o++){let r=he(e,o/Ue);r<=t*(1+1e-12)&&n.push([r,o/Ue])}return n}function St(e,t,n){let o=l=>t.querySelector(l),r=o(".td-spread-plot");function s(l,a,f){
let u=Kn(l,a,f),p=l.unit==="forward"?"passes":"tokens",h=f?p+" "+I(Math.ceil(Math.max(0,f[0])))+" to "+I(Math.floor(f[1]))+", as zoomed":l.unit==="forward"?"all\
 passes":"all tokens after the first";if(L(o(".td-spread-what"),"The first run of each arm: "+h+"."),!u.some(k=>k.length)){i();return}let m=Vn(u),g=m.edges[m.edges.
length-1];L(o(".td-spread-said"),x(l,u,m,g,p)),o("table").replaceChildren(...w(l,u,p)),d(l,u,m,g,p)}function i(){L(o(".td-spread-said"),"There are no latencies \
here."),window.Plotly&&Plotly.purge(r),o("table").replaceChildren()}function x(l,a,{beyond:f},u,p){return l.arms.map(({name:h},m)=>{if(!a[m].length)return"Arm "+
h+" has none yet.";let[g,k]=[.25,.75].map(c=>te(1e3*he(a[m],c))),y=f[m]?", and "+I(f[m])+" longer than the "+te(1e3*u)+" ms that are drawn":"";return"Half of th\
e "+p+" of arm "+h+" took "+g+" to "+k+" ms"+y+"."}).join(" ")}function w(l,a,f){let u=(h,m,g)=>{let k=b("tr",g);return m.forEach((y,c)=>{let v=b(c?h:"th","",y);
v.tagName==="TH"&&(v.scope=c?"col":"row"),k.append(v)}),k},p=u("th",["ms",f[0].toUpperCase()+f.slice(1),"Mean",...At.map(([h])=>h)],"");return p.cells[0].scope=
"col",[p,...l.arms.map(({name:h},m)=>{let g=a[m],k=g.reduce((c,v)=>c+v,0)/g.length,y=At.map(([,c])=>g.length<(n[c]||1)?"needs "+n[c]:te(1e3*he(g,c)));return u("\
td",["Arm "+h,I(g.length),...g.length?[te(1e3*k),...y]:[]],"arm-"+h.toLowerCase())})]}function d(l,a,{edges:f,shares:u},p,h){let m=z("--body-text-color"),g=z("-\
-border-color-primary"),k=f.map(E=>1e3*E),y=l.arms.flatMap(({name:E},P)=>{let R={width:1.6,...ee(l.arms[P],P)},X=Qn(a[P],p),D={type:"scatter",mode:"lines",name:V(
E),line:R,hoverinfo:"skip"};return[{...D,x:k,y:[...u[P].map(F=>100*F),0],line:{...R,shape:"hv"},fill:"tozeroy",fillcolor:R.color+"30"},{...D,x:X.map(F=>1e3*F[0]),
y:X.map(F=>100*F[1]),line:{...R,shape:"hv"},xaxis:"x2",yaxis:"y2",showlegend:!1}]}),c=.02*(k[k.length-1]-k[0]),v=[k[0]-c,k[k.length-1]+c],M={gridcolor:g,linecolor:g,
zeroline:!1,nticks:6,fixedrange:!0},_=E=>({text:E,standoff:4});oe().then(()=>Plotly.react(r,y,{paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{
color:m,size:11,family:z("--font")||"sans-serif"},height:260,margin:{t:24,b:38,l:46,r:8},hovermode:!1,legend:{orientation:"h",x:1,xanchor:"right",y:1,yanchor:"b\
ottom"},xaxis:{...M,range:v,domain:[0,.47],title:_("latency, ms")},yaxis:{...M,title:_("% of "+h),rangemode:"tozero"},xaxis2:{...M,domain:[.55,1],anchor:"y2",matches:"\
x",title:_("latency, ms")},yaxis2:{...M,anchor:"x2",title:_("cumulative %"),range:[0,101]}},{staticPlot:!0,responsive:!0,showSendToCloud:!1}))}return{show:s,openOn(l){
e.addEventListener("click",()=>{l()&&(t.showModal(),s(...l()))}),t.querySelector(".td-close").addEventListener("click",()=>t.close()),t.addEventListener("click",
a=>{a.target===t&&t.close()})},follow(l){t.open&&l()&&s(...l())}}}var Yn=3,Gn=8e3;function Et(e,t,n){let o=60,r=0,s=!1,i=0,x=0,w=0,d=0,l=!1,a=!1;function f(m){return new Promise((g,k)=>{let y=setTimeout(()=>k(new Error("no ans\
wer")),Gn);m.then(c=>{clearTimeout(y),g(c)},c=>{clearTimeout(y),k(c)})})}async function u(){let m=d;i++;try{let g="more";for(;g==="more";){let k=await f(e());if(m!==
d)return;a=!0,x&&(x=0,w=0,n("")),g=t(k)}g==="over"&&(l=!1)}catch{if(m!==d||!l)return;x++;let g=Math.min(1e4,250*2**x);w=performance.now()+g,n("The server does n\
ot answer. Retrying in "+$(g/1e3)+"; nothing is lost.")}finally{i--}}async function p(){if(!element.isConnected)return;let m=x||!a||s?1:Yn,g=l&&!document.hidden&&
i<m&&performance.now()>=w,k=g&&u();s&&await k,setTimeout(p,Math.max(o,r))}setTimeout(p,0),document.addEventListener("visibilitychange",()=>{!document.hidden&&element.
isConnected&&l&&i===0&&(w=0,u())});function h(){d++,x=0,w=0,a=!1,l=!0,n(""),document.hidden||u()}return{begin:h,stop(){d++,l=!1},every(m,g=!1){o=m,s=g},atLeast(m){
r=m},get running(){return l}}}var Ot=4e3;function $n(e,t,n){let o=q(e.t,n);if(o>=e.t.length)return e.n.length?e.n[e.n.length-1]:0;let r=o?[e.t[o-1],e.n[o-1]]:[t,0];return n<=r[0]?r[1]:Math.floor(
r[1]+(e.n[o]-r[1])*(n-r[0])/(e.t[o]-r[0]))}function Zn(e,t){let n=Ct(e.t,t),o=Ct(e.st,t),r={...e};for(let s of _e)r[s]=e[s].slice(0,n);for(let s of["st","sm"])r[s]=
e[s].slice(0,o);return r}function Ct(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<=t?n=r+1:o=r}return n}function Pt(e,t,n,o,r,s){let i=null,x=[],w=0,d=0,
l=!1,a=0;function f(k,y){i=k,x=y,w=Math.max(0,...x.map(v=>v.t.length?v.t[v.t.length-1]:0));let c=w>0&&i.unit!=="forward"&&i.arms.some(v=>v.pace.t.length);e.disabled=
t.disabled=o.disabled=!c,t.max=String(w),c&&(d=w,t.value=String(w),u())}function u(){L(e,l?"❚❚ Pause":"▶ Race");let k=i?i.arms.filter((c,v)=>x[v].t.length&&
d>=x[v].t[x[v].t.length-1]).map(c=>c.name):[],y=d<w&&k.length?", "+k.join(" and ")+" done":"";L(n,w?d.toFixed(w>=100?0:w>=10?1:2)+" of "+$(w)+y:""),t.setAttribute(
"aria-valuetext",$(d))}function p(){d>=w?(r.whole(),s(null,null)):(i.arms.forEach((k,y)=>r.upTo(y,x[y].t.length?$n(k.pace,x[y].t[0],d):0)),s(d,x.map(k=>Zn(k,d)))),
u()}function h(k){if(!l||!element.isConnected)return;let y=Math.max(0,k-a);d=Math.min(w,d+y/1e3*Number(o.value)),a=k,d>=w&&(l=!1),t.value=String(d),p(),l&&requestAnimationFrame(
h)}function m(){l=!1,w=0,d=0,i=null,x=[],e.disabled=t.disabled=o.disabled=!0,t.value="0",s(null,null),u()}function g(){e.disabled||(l=!l,l&&(d>=w&&(d=0),a=performance.
now(),requestAnimationFrame(h)),p())}return e.addEventListener("click",g),t.addEventListener("input",()=>{l=!1,d=Number(t.value),p()}),{ready:f,clear:m,toggle:g}}var eo=5e3,to=3e3;function Nt(e){let t=[],n=null,o=[];function r(a,f){if(e.replaceChildren(),o=[],f==="forward"){t=[],e.append(b("p","td-empty","An encoder gene\
rates no text: its forward passes are timed."));return}t=a.map(u=>{let p=b("section","td-text arm-"+u.name.toLowerCase()),h=b("div","td-scroll");h.tabIndex=0,h.
setAttribute("role","region"),h.setAttribute("aria-label","Text of arm "+u.name);let m=b("div","td-body");return m.append(document.createTextNode("")),h.append(
m),p.append(h),e.append(p),{body:m}}),n=b("p","td-text-comparison",""),e.append(n)}function s(a,f){if(!f||!t[a])return;let u=t[a].body.firstChild;u.appendData(f),
u.length>eo&&u.deleteData(0,u.length-to)}function i(a,f,u){if(!t[a])return;o[a]={text:f,difference:u};let p=t[a].body;if(p.replaceChildren(),u<0){p.append(document.
createTextNode(f));return}let h=b("span","td-divergent"),m=b("mark","td-difference","≠");m.title="The texts differ from here on.",h.append(document.createTextNode(
f.slice(u))),p.append(document.createTextNode(f.slice(0,u)),m,h)}function x(){for(let{body:a}of t){let f=a.parentElement,u=a.querySelector(".td-difference");u&&
(f.scrollTop+=u.getBoundingClientRect().top-f.getBoundingClientRect().top-f.clientHeight/3)}}function w(a,f){if(!t.length)return;let u=a.map(y=>y.text),[p,h]=u,
m=u.length<2?-1:it(p,h);if(u.forEach((y,c)=>{i(c,y,m),t[c].body.closest(".td-text").classList.toggle("td-unwritten",!y)}),x(),u.length<2)return;let g=Math.min(p.
length,h.length),k=m<0&&p.length===h.length;g?k?L(n,"The texts are identical."):m<0?L(n,"The first "+I(g)+" characters are identical; one text is longer."):f?.startsWith(
"The texts differ")?L(n,"Marked ≠: "+f):L(n,"The texts first differ at character "+I(m+1)+", marked ≠. "+(f||"")):L(n,"")}function d(a,f){if(!t[a]||!o[a])return;
let u=o[a].text.slice(0,f),p=document.createTextNode(u.slice(-Ot));t[a].body.replaceChildren(p)}function l(){t.forEach((a,f)=>{o[f]&&i(f,o[f].text,o[f].difference)}),
x()}return{build:r,append:s,finish:w,upTo:d,whole:l}}function Rt(e){let t=null,n=[],o=0;function r(l){e.replaceChildren(),n=l.map(a=>{let f=b("div","td-phases arm-"+a.name.toLowerCase()),u=b("span","td-steps"),p=b(
"i","td-phase-bar");return f.append(b("span","td-arm",a.name),b("b","td-label",a.label),u,p),e.append(f),{steps:u,bar:p,chips:new Map}})}function s(l,a,f){let u=l.
state==="begin"||l.state==="step",p=l.title+" "+$(u?Math.max(l.seconds,a-l.begin_s):l.seconds);return l.name==="run"&&!(t.quality&&!f)?p+=", "+I(f)+" of "+I(t.max_new_tokens)+
(t.unit==="forward"?" passes":" tokens"):u&&l.fraction!==null&&(p+=", "+Math.round(100*l.fraction)+"%"),l.wait&&(p+=", "+l.wait),u&&l.note&&(p+=" ("+l.note+")"),
l.state==="broken"?"✕ "+p:p}function i(l,a){return l.expected_s?Math.min(.95,(a-l.begin_s)/l.expected_s):0}function x(l,a){if(!t)return;let f=t.now_s+(performance.
now()-o)/1e3;t.arms.forEach((u,p)=>{let h=n[p];if(!u.phases.length){L(h.steps,a?"did not run":p?"waiting for arm "+t.arms[p-1].name:"waiting");return}h.chips.size||
h.steps.replaceChildren();for(let y of u.phases){let c=h.chips.get(y.name);c||(c=b("span",""),h.chips.set(y.name,c),h.steps.append(c));let v="td-step "+y.state;
c.className!==v&&(c.className=v),L(c,s(y,f,l[p].t.length))}let m=u.phases[u.phases.length-1],g=m.name==="run"?l[p].t.length/t.max_new_tokens:m.fraction||i(m,f),
k=u.state==="working"?(100*Math.min(1,g)).toFixed(1)+"%":"0";h.bar.style.width!==k&&(h.bar.style.width=k)})}function w(l){t=l,o=performance.now()}function d(){t=
null,n=[],e.replaceChildren()}return{build:r,take:w,tick:x,clear:d}}function It(e,t,n,o,r,s){function i(l,a){L(e,w(l,a)),e.classList.toggle("td-underway",!l.verdict.sentence),L(t,l.verdict.basis),L(o,l.verdict.unasked),s&&L(s,l.
verdict.pays),x(l.verdict),n.hidden=!l.digest,l.digest&&(n.className="td-digest "+l.digest.status,L(n,l.digest.line))}function x({gate:l,gate_run:a}){!r||r.textContent===
(l||"")||(r.replaceChildren(),r.title=l||"",l&&(a?r.append(Object.assign(b("a","td-gate-line",l),{href:"?"+new URLSearchParams({run:a})})):r.append(b("span","td\
-gate-line",l))))}function w(l,a){if(l.verdict.sentence)return l.verdict.sentence;if(a==="queued")return"Waiting for the runs before this one.";if(a!=="running")
return a==="done"?"The run is complete.":a==="cancelled"?"Stopped before both arms were complete: no verdict.":"";let f=l.arms.find(h=>h.state==="working");if(!f)
return"Starting.";let u=l.arms.filter(h=>h.state==="waiting").map(h=>h.name),p=f.phases.at(-1);return"Running arm "+f.name+(p?": "+p.title:"")+(u.length?"; then\
 arm "+u.join(" and ")+".":".")}function d(){L(e,""),L(t,""),L(o,""),s&&L(s,""),x({gate:"",gate_run:""}),n.hidden=!0}return{take:i,clear:d}}var Bt=[["title","Text",""],["positions","Positions","tokens that both arms were asked to predict"],["a","Perplexity A",""],["b","Perplexity B",""],["ratio","B \
/ A","perplexity of B / perplexity of A"],["kl","KL, nats","mean divergence of B from A"],["largest","Largest KL","at a single position"],["agreement","Agreemen\
t","positions at which both find the same token most likely"],["divergence","First divergence","first position at which they do not"]];function Ut(e){let t="";function n(s){
let i=JSON.stringify(s);if(i===t||(t=i,e.hidden=!s,e.replaceChildren(),!s)||(e.append(b("h3","","Quality on given texts")),e.append(o(s.rows)),s.progress&&e.append(
b("p","td-quality-progress",s.progress)),s.note&&e.append(b("p","",s.note)),!s.compared))return;let x=b("p",""),w=b("a","td-compared","The comparison of these a\
rms");w.href="?"+new URLSearchParams({run:s.compared}),x.append(w,document.createTextNode(" names this cost beside its gain.")),e.append(x)}function o(s){let i=b(
"div","td-quality-rows"),x=b("table",""),w=b("tr",""),d=b("thead",""),l=b("tbody","");i.tabIndex=0,i.setAttribute("role","region"),i.setAttribute("aria-label","\
Quality by text");for(let[,a,f]of Bt){let u=b("th","",a);u.scope="col",u.title=f,w.append(u)}d.append(w);for(let a of s){let f=b("tr",a===s[s.length-1]?"td-all-\
texts":""),u=b("th","",a.title);u.scope="row",f.append(u,...Bt.slice(1).map(([p])=>b("td","",a[p]))),l.append(f)}return x.append(d,l),i.append(x),i}function r(){
t="",e.hidden=!0,e.replaceChildren()}return{take:n,clear:r}}function qt(e){let t=new Map,n="";function o(x,w){let d=[...new Map(x.flatMap(a=>a.tiles.map(f=>[f.key,f.label])))],l=JSON.stringify([d,x.map(a=>a.name)]);n!==l&&
s(d,x,l);for(let[a]of d){let f=x.map(c=>c.tiles.find(v=>v.key===a)),{card:u,values:p,unit:h,foot:m}=t.get(a),g=[...new Set(f.map(c=>c&&c.unit).filter(Boolean))],
k=g.length===1;p.forEach((c,v)=>{let M=f[v],_=M&&M.value!=="n/a";L(c.number,_?M.value:"–"),L(c.unit,_&&!k&&M.unit?" "+M.unit:"")}),L(h,k?g[0]:"");let y=w[a];L(
m,y?y.text:r(f.map(c=>c?c.note:""))),m.className="td-foot"+(y&&y.better?" better":""),u.title=f.map((c,v)=>c&&c.note?x[v].name+": "+c.value+" "+c.unit+", "+c.note:
"").filter(Boolean).join(`
`)}}function r(x){let[w,...d]=new Set(x.filter(Boolean)),l=x.every(Boolean);return w&&!d.length&&(l||!/\d/.test(w))?w:""}function s(x,w,d){e.replaceChildren(),t=
new Map,n=d;for(let[l,a]of x){let f=b("div","td-tile"),u=b("p","td-figure"),p=b("span","td-unit",""),h=b("small","td-foot","");f.dataset.key=l;let m=w.map(g=>{let k=b(
"b","arm-"+g.name.toLowerCase()),y=b("span","",""),c=b("small","","");return k.append(y,c),u.append(b("span","td-hidden","Arm "+g.name+": "),k),{number:y,unit:c}});
u.append(p),f.append(b("h3","",a),u,h),e.append(f),t.set(l,{card:f,values:m,unit:p,foot:h})}}function i(){for(let{card:x,values:w,unit:d,foot:l}of t.values())x.
title="",w.forEach(a=>{L(a.number,"–"),L(a.unit,"")}),L(d,""),L(l,"")}return{take:o,clear:i}}function jt(e){let t="";function n(s){let i=s.filter(f=>f.details.length),x=JSON.stringify(i.map(f=>[f.name,f.details]));if(x===t)return;if(t=x,e.replaceChildren(),
!i.length){e.append(b("p","td-empty","Percentiles, intervals and readings of the machine appear here once an arm has finished."));return}let w=b("table",""),d=b(
"thead",""),l=b("tbody","");d.append(Me("Figure",i));let a=new Map(i.flatMap(f=>f.details.map(u=>[u.key,u.label])));for(let[f,u]of a){let p=b("tr",""),h=b("th",
"",u);h.scope="row",p.dataset.key=f,p.append(h,...i.map(m=>o(m.details.find(g=>g.key===f)))),l.append(p)}w.append(d,l),e.append(w)}function o(s){let i=b("td","");
return s&&(i.append(b("b","",s.value),document.createTextNode(s.unit?" "+s.unit:"")),s.note&&i.append(b("small","",s.note))),i}function r(){t="",e.replaceChildren()}
return{take:n,clear:r}}var no={verified:"✓ verified",partial:"◐ partial",no_effect:"○ no effect",fallback:"▲ fallback",failed:"✕ failed",unchecked:"◌ unchecked",off:"off",
not_applicable:"not applicable"};function Ft(e){let t="",n=!1;function o(w,d){let l=JSON.stringify([w.map(k=>k.ledger),d]);if(l===t)return;if(t=l,e.replaceChildren(),
!d){e.append(b("p","td-empty","Proof that each choice took effect appears here once an arm has finished."));return}let a=b("table",""),f=b("tr",""),u=b("thead",
""),p=b("tbody",""),h=b("caption","","Ledger");h.append(b("small","",d.line)),a.append(h);for(let k of["Axis","Arm","Requested","Planned","Effective","Status","\
Proof"]){let y=b("th","",k);y.scope="col",y.role="columnheader",f.append(y)}u.append(f);for(let[k,y]of[[u,"rowgroup"],[p,"rowgroup"],[f,"row"]])k.role=y;let m=[
...new Set(w.flatMap(k=>k.ledger.map(y=>y.axis)))];for(let k of m){let y=s(w,k);y.forEach((c,v)=>{let M=i(c,d.titles[k]||k,v?0:y.length);M.classList.toggle("td-\
quiet",!d.shown.includes(k)),p.append(M)})}let g=b("button","td-all","");g.type="button",g.addEventListener("click",()=>{n=!n,r(a,g,m.length,d)}),a.append(u,p),
e.append(a,g),r(a,g,m.length,d)}function r(w,d,l,a){let f=!n&&!a.shown.length;w.classList.toggle("td-folded",!n),w.classList.toggle("td-none",f),w.role=f?"prese\
ntation":"table",d.hidden=a.shown.length===l,L(d,n?"Only what differs or is not verified":"All "+l+" axes with their proof"),d.setAttribute("aria-expanded",String(
n))}function s(w,d){let l=new Map;for(let a of w)for(let f of a.ledger.filter(u=>u.axis===d)){let u=JSON.stringify(f);l.has(u)?l.get(u).arms.push(a.name):l.set(
u,{...f,arms:[a.name]})}return[...l.values()]}function i(w,d,l){let a=b("tr",w.status);if(a.role="row",l){let p=b("th","",d);p.scope="rowgroup",p.rowSpan=l,p.role=
"rowheader",a.append(p)}let f=b("td","td-who");for(let p of w.arms){let h=b("span","arm-"+p.toLowerCase());h.append(b("span","td-arm",p)),f.append(h)}a.append(f);
for(let p of["requested","planned","effective"]){let h=b("td","td-choice",w[p]);h.dataset.title=p,a.append(h)}a.append(b("td","td-status",no[w.status]||w.status));
let u=b("td","td-proof",w.proof);w.reason&&u.append(b("small","",w.reason)),a.append(u);for(let p of a.querySelectorAll("td"))p.role="cell";return a}function x(){
t="",n=!1,e.replaceChildren()}return{take:o,clear:x}}var Dt={ok:"",note:"Note: ",fallback:"▲ Fallback: ",blocked:"✕ Blocked: "};function zt(e,t){let n=t.flatMap(r=>[...r.verdicts.filter(s=>s.level!=="ok").map(
s=>({arm:r.name,level:s.level,text:Dt[s.level]+s.reason})),...r.spoilers.map(s=>({arm:r.name,level:"fallback",text:"▲ "+s})),...r.notes.map(s=>({arm:r.name,level:"\
note",text:Dt.note+s}))]),o=JSON.stringify(n);e.dataset.shown!==o&&(e.dataset.shown=o,e.replaceChildren(...n.map(r=>{let s=b("li",r.level+" arm-"+r.arm.toLowerCase());
return s.append(b("span","td-arm",r.arm),document.createTextNode(r.text)),s})))}function qe(e,{of:t,title:n,hint:o,whole:r,numbers:s,lacking:i}){let x="";function w(p){let h=p.map(c=>({name:c.name,step:t(c)})).filter(c=>c.step),m=JSON.stringify(
h);if(m===x)return;x=m,e.hidden=!h.length;let g=h.filter(c=>!c.step.missing),k=Math.max(...g.map(c=>c.step.seconds)),y=b("h3","",n);if(g.some(c=>c.step.parts.some(
v=>v.reads_s!==null))&&y.append(b("span","td-part-hint",o)),e.replaceChildren(y,...g.map(c=>l(c,k))),g.length){let c=b("div","td-part-scroll");c.tabIndex=0,c.setAttribute(
"role","region"),c.setAttribute("aria-label",s),c.append(a(g)),e.append(c)}for(let c of h){let v=b("p","arm-"+c.name.toLowerCase());v.append(b("span","td-arm",c.
name),document.createTextNode(c.step.missing?i+c.step.missing+".":d(c.step.said))),e.append(v)}}function d(p){return p[0].toUpperCase()+p.slice(1)+"."}function l({
name:p,step:h},m){let g=b("div","td-part-bar arm-"+p.toLowerCase()),k=b("div","td-part-track");g.setAttribute("aria-hidden","true");for(let y of h.parts){if(!y.
seconds)continue;let c=b("span","td-part-piece td-part "+y.key);if(c.style.width=100*y.seconds/m+"%",c.title=[y.label+" "+y.text,y.reads].filter(Boolean).join("\
, "),y.reads_s!==null){let v=b("i","td-part-need");v.style.width=Math.min(100,100*y.reads_s/y.seconds)+"%",c.append(v)}k.append(c)}return g.append(b("span","td-\
arm",p),k),g}function a(p){let h=b("table",""),m=b("thead",""),g=b("tbody","");m.append(Me("Part",p));let k=[];for(let v of p){let M=0;for(let _ of v.step.parts){
let E=k.findIndex(P=>P.key===_.key);E<0?k.splice(M++,0,_):M=E+1}}for(let{key:v,label:M}of k){let _=b("tr",""),E=b("th","");_.dataset.key=v,E.scope="row",E.append(
b("i","td-part-key td-part "+v),document.createTextNode(M)),_.append(E,...p.map(P=>f(P.step.parts.find(R=>R.key===v)))),g.append(_)}let y=b("tr",""),c=b("th","",
r);return c.scope="row",y.append(c,...p.map(v=>b("td","",v.step.text))),g.append(y),h.append(m,g),h}function f(p){let h=b("td","");return p&&(h.append(b("b","",
p.text),document.createTextNode(p.seconds===null?"":" "+Math.round(100*p.share)+"%")),p.reads&&h.append(b("small","",p.reads))),h}function u(){x="",e.hidden=!0,
e.replaceChildren()}return{take:w,clear:u}}function Ht(e){let t="",n=null;function o(i){let x=JSON.stringify(i.crossing??null);if(x===t)return;if(t=x,n=i.crossing?i:null,e.hidden=!n,!n){e.replaceChildren();
return}let w=b("h3","","When does waiting pay?");w.append(b("span","td-part-hint","seconds since the imports were done, over "+(i.unit==="forward"?"forward pass\
es":"tokens written")));let d=b("div","td-crossing-plot");d.setAttribute("aria-hidden","true"),e.replaceChildren(w,d),r()}function r(){if(!n)return;let{arms:i,crossing:{
starts_s:x,steps_s:w,tokens:d,label:l}}=n,a=e.querySelector(".td-crossing-plot"),f=z("--body-text-color"),u=z("--border-color-primary"),p=2*d,h=(c,v)=>x[c]+v*w[c],
m=Math.max(...i.map((c,v)=>h(v,p))),g=i.map((c,v)=>({type:"scatter",mode:"lines",name:"Arm "+V(c.name),line:{width:2,...ee(c,v)},x:[0,p],y:[h(v,0),h(v,p)]})),k=h(
0,d),y={gridcolor:u,linecolor:u,zeroline:!1,nticks:6,fixedrange:!0};g.push({type:"scatter",mode:"markers",x:[d],y:[k],marker:{size:9,color:z("--body-background-\
fill"),line:{width:2,color:f}},showlegend:!1}),oe().then(()=>Plotly.react(a,g,{paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:f,size:11,
family:z("--font")||"sans-serif"},height:220,margin:{t:24,b:38,l:46,r:8},hovermode:!1,legend:{orientation:"h",x:1,xanchor:"right",y:1,yanchor:"bottom"},xaxis:{...y,
range:[0,p],tickformat:",",title:{text:n.unit==="forward"?"forward passes":"tokens",standoff:4}},yaxis:{...y,range:[0,1.05*m],ticksuffix:" s"},annotations:[{x:d,
y:k,text:"<b>"+V(l)+"</b>",showarrow:!1,yanchor:"top",xanchor:"left",xshift:8,yshift:-6}]},{staticPlot:!0,responsive:!0,showSendToCloud:!1}))}function s(){o({})}
return ve(r),{take:o,clear:s}}var oo="Press Run: arm A answers the prompt first, then arm B. Their texts, speed, memory and KV cache appear here, with proof that each choice took effect.",Xt=new URLSearchParams(
location.search).get("pace"),ro=75,so=60,Jt=Tt(T(".td-plot"),T(".td-moments"),T(".td-noted"),settings.charts),ao={outliers:T(".td-outliers"),axes:T(".td-axis"),
whole:T(".td-whole")},io=_t(T(".td-plot"),T(".td-fresh"),settings.charts),Q=Lt(T(".td-plot"),settings.charts,ao,Jt,io),Ce=Nt(T(".td-texts")),je=Pt(T(".td-race"),
T(".td-scrub"),T(".td-clock"),T(".td-speed"),Ce,(e,t)=>{Q.only(t),Jt.pointAt(e)}),Kt=St(T(".td-distribution"),T(".td-spread"),settings.fewest),Vt=()=>S&&[S,j,Q.
zoom],xe=Rt(T(".td-progress")),De=It(T(".td-sentence"),T(".td-basis"),T(".td-digest"),T(".td-unasked"),T(".td-gate"),T(".td-pays")),Qt=Ut(T(".td-quality")),Yt=qt(
T(".td-tiles")),Gt=jt(T(".td-rows")),$t=Ft(T(".td-ledger")),Zt=qe(T(".td-parts"),{of:e=>e.step,title:"Where the time of a step goes",hint:"the line under a part\
 is the time that its bytes need",whole:"Measured",numbers:"Parts of a step as numbers",lacking:"Not traced: "}),en=qe(T(".td-start"),{of:e=>e.start,title:"From\
 process to first token",whole:"Together",numbers:"Parts of a start as numbers"}),tn=Ht(T(".td-crossing")),j=[],S=null,H="",ze=-1,nn=0,Fe=0,ce=!1,He=!1,re=!1,ge=!1,
Ee=Et(lo,co,e=>L(T(".td-connection"),e));async function lo(){let e=++nn,t=H,n=j.length?j.map(Oe):[[0,0,0],[0,0,0]];ce&&n.forEach(s=>{s[2]=0});let o=ge&&!ce&&!He?
so:0,r=JSON.parse(await server.pull({run:t,version:ze,cur:n,wait_ms:o}));return r.seq=e,r}function co(e){if(e.error)return $e(H,e.error),"over";if(e.run!==H||re)
return re?"over":"wait";if(e.head&&e.seq>Fe&&(Fe=e.seq,fo(e)),!S)return"wait";Ge(e.status,e.queue),et(e.trouble),Ee.atLeast(e.every_ms);let t=!1,n=!1;return e.lanes.
forEach((o,r)=>{if(!j[r])return;ce&&o.cfirst===0&&at(j[r],o);let s=st(j[r],o);Ce.append(r,s.added),n=n||s.tokens>0||s.samples>0,t=t||o.n-o.first>=settings.most}),
He=t,n&&(Q.grow(),Kt.follow(Vt)),window.tokendynoProbe&&window.tokendynoProbe.arrived(j.map(o=>o.t.length)),e.ended?ce?e.lanes.every(o=>o.cfirst===0)?(uo(e),"ov\
er"):"more":(ce=!0,"more"):t?"more":"wait"}function fo(e){let t=!S;S=e.head,ze=e.version,t&&(j=S.arms.map(ot),Ce.build(S.arms,S.unit),xe.build(S.arms),element.classList.
toggle("single",S.arms.length===1),L(T(".td-empty-run"),""),ae(!1)),L(T(".td-title"),S.title),L(T(".td-note"),S.note),xe.take(S),De.take(S,e.status),settings.links&&
window.tokendynoAddress?.title("compare",S.heading),Qt.take(S.quality),element.classList.toggle("td-reads",!!S.quality),Yt.take(S.arms,S.differences),Gt.take(S.
arms);let n=S.arms.filter(r=>r.spoilers.length).map(r=>r.name);L(T(".td-interference"),n.length?"▲ Possible interference ("+n.join(" and ")+")":""),Be(T(".td-\
annotations"),S.arms,S.unit),$t.take(S.arms,S.digest),Zt.take(S.arms),en.take(S.arms),tn.take(S),zt(T(".td-remarks"),S.arms),tt(e.status,S.message)&&ae(!S.arms.
some(r=>r.prompt_tokens)),Q.take(S,j),on(e.ended)}function on(e){ge=!e&&(Xt?Xt==="quiet":S.quiet&&Ye),Q.pace(...ge?[60,1e3,6e3]:[10,300,1e3]),Ee.every(...ge?[ro,
!0]:[60,!1])}async function Wt(){let e=H;if(!(re&&!document.hidden&&S.verdict.gate&&!S.verdict.gate_run))return;let n=JSON.parse(await server.pull({run:e,version:-1,
cur:j.map(Oe),anew:!0}).catch(()=>"{}"));!n.head||e!==H||!re||(S.verdict=n.head.verdict,De.take(S,n.status))}function uo(e){re=!0,on(!0),xe.tick(j,!0),Ce.finish(
j,S.texts),Q.end(),je.ready(S,j),element.dataset.status=e.status,element.dataset.over=e.run,trigger("finished",{run:e.run,status:e.status}),settings.replays&&!matchMedia(
"(prefers-reduced-motion: reduce)").matches&&je.toggle()}function rn(e){if(H=e||"",j=[],S=null,ze=-1,Fe=nn,ce=!1,He=!1,re=!1,Ze(H,["interference"]),element.classList.
remove("td-reads"),settings.links&&window.dispatchEvent(new Event("tokendyno-run")),settings.links&&window.tokendynoAddress?.title("compare",""),T(".td-texts").
replaceChildren(),Be(T(".td-annotations"),[]),je.clear(),xe.clear(),De.clear(),Qt.clear(),Yt.clear(),Gt.clear(),$t.clear(),Zt.clear(),en.clear(),tn.clear(),Q.reset(
H),L(T(".td-empty-run"),H||!settings.links?"":[oo,settings.first].filter(Boolean).join(" ")),H||ae(!0),settings.links&&nt(H),!H){Ee.stop();return}Ee.begin()}function sn(){
element.isConnected&&(S&&!re&&!document.hidden&&xe.tick(j),setTimeout(sn,ge?1e3:100))}Kt.openOn(Vt);T(".td-csv").addEventListener("click",()=>{S&&yt(kt(S,j),"to\
kendyno-"+H+".csv")});T(".td-png").addEventListener("click",()=>{S&&Q.picture("tokendyno-"+H)});ve(()=>Q.touch());settings.links&&(window.addEventListener("toke\
ndyno-measured",Wt),document.addEventListener("visibilitychange",Wt));new ResizeObserver(()=>Q.touch()).observe(element);element.classList.add("td-live");element.
live={get series(){return j},get head(){return S}};watch("value",()=>{(props.value||"")!==H&&rn(props.value)});ae(!0);rn(props.value);sn();})();
