"use strict";(()=>{var ve=e=>{new MutationObserver(()=>e()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};function w(e,t,n){let o=document.createElement(e);return t&&(o.className=t),n!==void 0&&(o.textContent=n),o}function Me(e,t){let n=w("tr","");n.append(w("th","",
e),...t.map(o=>{let r=w("th","arm-"+o.name.toLowerCase());return r.append(w("span","td-arm",o.name)),r}));for(let o of n.querySelectorAll("th"))o.scope="col";return n}
function T(e,t){e.textContent!==t&&(e.textContent=t)}function _(e){return element.querySelector(e)}function z(e){return getComputedStyle(element).getPropertyValue(
e).trim()}function I(e){return e.toLocaleString("en-US")}function $(e){return e>=100?Math.round(e)+" s":e.toFixed(e>=10?1:2)+" s"}function Ye(e){return e>=4*2**
30?{unit:"GiB",scale:1/2**30}:e>=2*2**20?{unit:"MiB",scale:1/2**20}:{unit:"KiB",scale:1/1024}}var vn={queued:"Queued",running:"Running",done:"Done",failed:"Failed",cancelled:"Stopped",interrupted:"Interrupted"},Ge=/^(localhost|127(\.\d+){3}|\[::1\])$/.test(
location.hostname);function $e(e,t){T(_(".td-status"),vn[e]||e),e==="queued"&&t&&T(_(".td-message"),t),element.dataset.status=e}function ae(e){element.classList.
toggle("td-bare",e)}function Ze(e,t){for(let n of["status","empty-run"])T(_(".td-"+n),"");T(_(".td-failure"),t),ae(!0),trigger("finished",{run:e,status:"unknown"})}
function et(e,t){for(let n of["status","over"])delete element.dataset[n];element.dataset.run=e;for(let n of["status","title","note","failure","message","connect\
ion","unkept",...t])T(_(".td-"+n),"");_(".td-remarks").replaceChildren(),delete _(".td-remarks").dataset.shown}function tt(e){T(_(".td-unkept"),e?"▲ "+e:"")}function nt(e,t){
let n=e==="failed"||e==="interrupted";return T(_(".td-failure"),n?t||"The run ended unexpectedly.":""),T(_(".td-message"),n?"":t),n}function Te(e){return _(e)}function ot(e){
if(_(".td-link").hidden=_(".td-files").hidden=!e,!e)return;let t=new URL(location.href);t.search="?"+new URLSearchParams({run:e}),t.hash="",Te(".td-permalink").
href=t.href,T(_(".td-permalink"),t.search),Te(".td-kept").href="?"+new URLSearchParams({view:"history",q:e}),_(".td-kept").hidden=e.startsWith("recorded-");for(let r of[
"dyno","html","json"])Te(".td-file-"+r).href="files/"+encodeURIComponent(e)+"."+r;_(".td-file-html").hidden=!_(".td-plot");let n=new URL(location.href),o=n.searchParams.
get("view")||window.tokendynoAddress?.page;if(o&&o!=="compare"&&o!=="batching"){window.tokendynoAddress?.note(element.closest("#batch-live")?"batching":"compare",
e);return}n.searchParams.set("run",e);for(let r of["worth","sweep"])n.searchParams.delete(r);n.href!==location.href&&history.replaceState(history.state,"",n.href)}
async function Mn(){let{href:e}=Te(".td-permalink");try{await navigator.clipboard.writeText(e),T(_(".td-copied"),"Copied")}catch{window.prompt("Copy this link:",
e)}setTimeout(()=>T(_(".td-copied"),""),2e3)}_(".td-copy").addEventListener("click",Mn);var _e=["t","lat","kvs","kvf"];function rt(){return{t:[],lat:[],kvs:[],kvf:[],st:[],sm:[],text:"",chars:0}}function Oe(e){return[e.t.length,e.st.length,e.chars]}
function st(e){return Object.fromEntries([..._e,"st","sm"].map(t=>[t,e[t].length]))}function at(e,t){let n={tokens:0,samples:0,added:""},o=e.t.length;if(t.first<=
o&&t.n>o){for(let s of _e){let i=e[s],b=t[s];for(let y=o-t.first;y<b.length;y++)i.push(b[y])}n.tokens=t.n-o}let r=e.st.length;if(t.sfirst<=r&&t.sn>r){for(let s=r-
t.sfirst;s<t.st.length;s++)e.st.push(t.st[s]),e.sm.push(t.sm[s]);n.samples=t.sn-r}if(t.cfirst<=e.chars&&t.cn>e.chars){let s=e.chars-t.cfirst;n.added=s?Array.from(
t.text).slice(s).join(""):t.text,e.text+=n.added,e.chars=t.cn}return n}function it(e,t){e.text=t.text,e.chars=t.cn}function lt(e,t){let n=Math.min(e.length,t.length);
for(let o=0;o<n;o++)if(e.charCodeAt(o)!==t.charCodeAt(o))return o;return-1}function q(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<t?n=r+1:o=r}return n}function ct(e,t,n,o){let r=Math.max(0,n-t);if(r<=o)return Array.from({length:r},
(i,b)=>t+b);let s=2;for(;s*(o/2-2)<r;)s*=2;for(;;){let i=Tn(e,t,n,s);if(i.length<=o)return i;s*=2}}function Tn(e,t,n,o){let r=[t];for(let s=t-t%o;s<n;s+=o){let i=Math.
max(s,t),b=Math.min(s+o,n),y=[];for(let p of e){let l=Math.min(b,p.length);if(i>=l)continue;let a=i,f=i;for(let m=i+1;m<l;m++)p[m]<p[a]?a=m:p[m]>p[f]&&(f=m);y.push(
a,f)}y.sort((p,l)=>p-l);for(let p of y)p>r[r.length-1]&&r.push(p)}return r[r.length-1]!==n-1&&r.push(n-1),r}function Z(e,t,n){return e.at==="sample"?t==="second"?o=>n.st[o]:o=>le(n.t,n.st[o]):t==="second"?o=>n.t[o]:o=>o}function Le(e,t,n,[o,r]){if(e.at==="sample"){let[
s,i]=t==="second"?[o,r]:[ie(n.t,o),ie(n.t,r)];return[q(n.st,s),q(n.st,i)]}return t==="second"?[q(n.t,o),q(n.t,r)]:[Math.floor(o),Math.ceil(r)]}function Pe([e,t],n,o){
let r=o.filter(i=>i.t.length);if(!r.length)return null;let s=r.map(({t:i})=>n==="second"?[ie(i,e),ie(i,t)]:[le(i,e),le(i,t)]);return[Math.min(...s.map(i=>i[0])),
Math.max(...s.map(i=>i[1]))]}function dt(e,{t},n){return!t.length||n>t[t.length-1]?null:e==="second"?n:n<t[0]?null:q(t,n)}function ie(e,t){if(!e.length)return 0;
let n=e.length-1,o=Math.min(n,Math.max(0,t)),r=Math.floor(o);return r===n?e[n]:e[r]+(o-r)*(e[r+1]-e[r])}function le(e,t){let n=q(e,t);return n===0?0:n>=e.length?
e.length-1:n-1+(t-e[n-1])/(e[n]-e[n-1])}var _n=.98,Ln=2,Sn=1.5,An=20;function Se(e,t){let n=Float64Array.from(e.flatMap(s=>s.slice(t))).sort();if(n.length<An)return null;
let o=n[Math.floor(_n*(n.length-1))];return n[n.length-1]>Ln*o?Sn*o:null}var ft=[{color:"#4269d0",dash:"solid"},{color:"#ff725c",dash:"5px,2.5px"},{color:"#3ca951",dash:"10px,3px"},{color:"#a463f2",dash:"9px,3px,2px,3px"},{color:"#9c\
6b4e",dash:"4px,2px,1px,2px,1px,2px"}];function ee(e,t){return ft[(e.line??t)%ft.length]}var ut="1px,3px",Cn=400;function pt(e,t){return e.flatMap((n,o)=>{let r={
xaxis:"x"+U(o),yaxis:"y"+U(o),type:"scatter",mode:"lines"};if(!t.head)return[{...r,x:[0,1],y:[0,1],line:{width:0},hoverinfo:"skip",showlegend:!1}];let s=t.part?
{...t,series:t.part}:t,i=me(n,t),b=On(n,o,r,i,s);return n.annotations&&b.push(...xt(n,r,s)),t.tops&&t.tops[o]!==null&&b.push(...Rn(n,o,r,s)),b.push(Bn(n,o,r,t)),
b.concat(Un(n,o,r,i,t))})}function U(e){return e?e+1:""}function V(e){return e.replace(/[<>&]/g,"")}function W(e,t){return t.unit==="forward"?0:e.first}function J(e){
return e.lines.filter(t=>!t.curve)}function Ne(e,t,{head:n,series:o,axis:r,zoom:s}){let i=W(e[0],n),b=t.flatMap(l=>e.map(a=>o[l][a.column])),y=i,p=Math.max(0,...b.
map(l=>l.length));if(s){let[l,a]=Le(e[0],r,o[t[0]],s);y=Math.max(y,l-1),p=Math.min(p,a+2)}return ct(b,y,p,Cn)}function Re(e,t,{head:n,series:o}){return e.curve?
n.arms[t][e.curve]:o[t]}function mt(e,t){let n=0;for(let o of e.lines)t.series.forEach((r,s)=>{let i=Re(o,s,t);if(i)for(let b of i[o.column])b>n&&(n=b)});return n}
function En(e,{series:t}){let n=1/0;for(let o of J(e))for(let r of t)for(let s of r[o.column])s<n&&(n=s);return n<1/0?n:0}function ht(e,t,n){return e.unit!=="by\
tes"?{unit:e.unit,scale:1}:n||Ye(mt(e,t))}function me(e,t){let n=o=>t.series.some((r,s)=>{let i=Re(o,s,t),b=i&&i[o.column];return b&&b.length&&b[b.length-1]>0});
return[...new Set(e.lines.filter(o=>o.kind&&n(o)).map(o=>o.kind))]}function On(e,t,n,o,r){let{head:s,series:i,hidden:b,axis:y,ended:p}=r,{scale:l}=r.units[t],a=[],
f=J(e),m=i.map((x,d)=>d),h=f[0].at==="token"&&y==="token"?m.map(()=>Ne(f,m,r)):m.map(x=>Ne(f,[x],r)),g=(x,d,k,c)=>{let v=s.arms[d].name,M=ee(s.arms[d],d);a.push(
{...n,x:k,y:c,name:V([v,x.kind,x.label].filter(Boolean).join(" ")),showlegend:!1,hoverinfo:"skip",visible:![v,x.kind,x.label].some(L=>L&&b.has(L)),meta:{chart:e.
key,arm:v,kind:x.kind,curve:x.curve},line:{width:x.width,color:M.color,dash:x.curve?ut:M.dash},opacity:x.curve?.9:1})};for(let x of e.lines)for(let d of m){if(x.
kind&&!o.includes(x.kind))continue;let k=Re(x,d,r),c=x.scale*l;if(!k)continue;let v=k[x.column];if(x.curve&&x.at==="sample"){let L=y==="second"?k.x:k.x.map(C=>C===
null?null:le(i[d].t,C));g(x,d,L,v.map(C=>C===null?null:C*c));continue}if(x.curve){let L=Ie(x,s.arms[d]),{t:C}=i[d];if(y==="token"){let R=p?Math.max(...i.map(D=>D.
t.length))-1+L:1/0,X=Nn(k.x,R);g(x,d,X.map(D=>D-L),X.map(D=>pe(k.x,v,D)*c));continue}let P=Ne(Pn,[d],r).filter(R=>R+L>=k.x[0]);g(x,d,P.map(R=>C[R]),P.map(R=>pe(
k.x,v,R+L)*c));continue}let M=h[d].filter(L=>L<v.length);g(x,d,M.map(Z(x,y,k)),M.map(L=>v[L]*c))}return a}var Pn=[{at:"token",column:"lat",first:0,scale:1,kind:"",
width:1,curve:"",label:""}];function Ie(e,t){return e.at==="length"?t.prompt_tokens:0}function Nn(e,t){let n=e.filter(o=>o<=t);return n.length&&n.length<e.length&&
n[n.length-1]<t?[...n,t]:n}function pe(e,t,n){let o=q(e,n);return o===0||o>=e.length?t[o?e.length-1:0]:t[o-1]+(t[o]-t[o-1])*(n-e[o-1])/(e[o]-e[o-1])}function Rn(e,t,n,o){
let{head:r,series:s,hidden:i,axis:b,tops:y}=o,{unit:p,scale:l}=o.units[t],[a]=J(e);return r.arms.map((f,m)=>{let u=s[m][a.column],h=a.scale*l,g=[];for(let x=W(a,
r);x<u.length;x++)u[x]*h>y[t]&&g.push(x);return{...n,mode:"markers",x:g.map(Z(a,b,s[m])),y:g.map(()=>.985*y[t]),showlegend:!1,visible:!i.has(f.name),cliponaxis:!1,
marker:{symbol:"triangle-up"+(m%2?"-open":""),size:7,color:ee(r.arms[m],m).color},hoverinfo:"skip",text:g.map(x=>(u[x]*h).toPrecision(3)+" "+p),meta:{chart:e.key,
outliers:f.name}}})}function gt(e,t,{head:n,series:o,ended:r,axis:s,zoom:i,units:b},y){let p=e.lines.find(k=>k.curve==="floor"),l=n.arms.map((k,c)=>[k,o[c]]),a=p?
l.filter(([{floor:k}])=>k&&k[p.column].length):[];if(!a.length)return[];let{unit:f,scale:m}=b[t],u=a.map(([{floor:k},{t:c}])=>{let v=i?i[1]:r&&s==="token"?Math.
max(...o.map(L=>L.t.length))-1:1/0,M=s==="second"?le(c,v):v;return pe(k.x,k[p.column],M)*p.scale*m}),h=u.map(k=>Number(k.toPrecision(3))),x=Math.max(...u)<1.1*Math.
min(...u)?h[0]:a.map(([k],c)=>V(k.name)+" "+h[c]).join(", "),d=a.filter(([{floor:k}])=>k.exchanges).map(([{name:k,floor:c}])=>", exchanges of "+V(k)+" "+c.exchanges).
join("");return[{text:"roofline bound "+x+" "+f+d,showarrow:!1,xref:"x"+U(t)+" domain",yref:"y"+U(t),x:1,y:Math.max(...u),xanchor:"right",yanchor:"bottom",font:{
size:10,color:y}}]}var In=.25;function Bn(e,t,n,o){let{head:r,series:s,ended:i,axis:b}=o,{scale:y}=o.units[t],p=[0,Math.max(1,i?Math.max(...s.map(h=>h.t.length)):
r.max_new_tokens)];if(b==="second"){let h=Math.max(0,...s.flatMap(({t:x,st:d})=>[x,d].filter(k=>k.length).map(k=>k[k.length-1]))),g=10**Math.floor(Math.log10(Math.
max(1,h)));p=[0,i?h:Math.ceil((h+g/10)/g)*g]}let l=e.unit==="bytes"?mt(e,o)*y:0,a=e.min_span*l,f=e.from_zero?0:En(e,o)*y,m=i?l:l+In*(l-f),u=[f-a/4,Math.max(m,f+
3*a/4)];return{...n,x:p,y:u,line:{width:0},hoverinfo:"skip",showlegend:!1,meta:{chart:e.key,extent:!0}}}function Un(e,t,n,o,{head:r,hidden:s,neutral:i}){let b=(a,f,m)=>({
...n,x:[null],y:[null],name:V(a),line:f,legend:m,showlegend:!0,hoverinfo:"skip",visible:s.has(a)?"legendonly":!0,meta:{legend:a}}),y="legend"+U(t),p=t?[]:r.arms.
map((a,f)=>b(a.name,{width:2,...ee(r.arms[f],f)},y));for(let a of o){let{width:f}=J(e).find(m=>m.kind===a);p.push(b(a,{width:f,color:i},y))}let l=a=>a.curve&&(!a.
kind||o.includes(a.kind))&&r.arms.some(f=>f[a.curve]);for(let a of new Set(e.lines.filter(l).map(f=>f.label)))p.push(b(a,{width:1.2,color:i,dash:ut},y));return p}var kt={compile:["diamond","◆"],recompile:["diamond","◆"],graph_skip:["x","✕"],window:["triangle-down","▼"],cache:["square","■"],gc:["circle","●"],throttle:[
"star","★"],foreign:["cross","✚"]},wt=3;function xt(e,t,{head:n,series:o,hidden:r,axis:s,ink:i}){let b=J(e)[0],y=W(b,n),p=[];return n.arms.forEach((l,a)=>{let f=o[a][b.
column],m=new Map(l.marks.filter(({token:g})=>g>=y&&g<f.length).reverse().map(g=>[g.token,g.kind]));if(!m.size)return;let u=[...m.keys()].sort((g,x)=>g-x),h=u.map(
g=>kt[m.get(g)][0]);p.push({...t,mode:"markers",x:u.map(Z(b,s,o[a])),y:u.map(g=>f[g]*b.scale),marker:{symbol:h.map(g=>g+(a%2?"-open":"")),size:9,color:i,line:{width:1.2,
color:i}},hoverinfo:"skip",showlegend:!1,visible:!r.has(l.name),meta:{chart:e.key,annotations:l.name}})}),p}function Be(e,t,n){let o=JSON.stringify(t.map(s=>s.marks));
if(e.dataset.shown===o)return;e.dataset.shown=o;let r=s=>(n==="forward"?"pass ":"token ")+I(s.token)+": "+s.text;e.title=t.flatMap(s=>s.marks.map(i=>s.name+" "+
r(i))).join(`
`),e.replaceChildren(...t.filter(s=>s.marks.length).map(s=>{let i=w("span","td-annotation arm-"+s.name.toLowerCase());i.append(w("span","td-arm",s.name));let b=s.
marks.slice(0,wt).map(p=>kt[p.kind][1]+" "+r(p)),y=s.marks.length-wt;return i.append(document.createTextNode(b.join(", ")+(y>0?" and "+I(y)+" more":""))),i}))}var qn=["arm","series","index","seconds","latency_s","kv_sliding_bytes","kv_full_bytes","memory_bytes"];function yt(e,t){let n=[qn.join(",")],o=e.unit==="forwar\
d"?"pass":"token";return e.arms.forEach(({name:r},s)=>{let{t:i,lat:b,kvs:y,kvf:p,st:l,sm:a}=t[s];i.forEach((f,m)=>n.push([r,o,m,f,b[m],y[m],p[m],""].join(","))),
l.forEach((f,m)=>n.push([r,"sample",m,f,"","","",a[m]].join(",")))}),n.join(`
`)+`
`}function bt(e,t){let n=document.createElement("a");n.href=URL.createObjectURL(new Blob([e],{type:"text/csv"})),n.download=t,n.click(),setTimeout(()=>URL.revokeObjectURL(
n.href),1e4)}function jn(e,t,n,o){let{t:r,st:s}=n;if(e.at==="sample"){let b=t.second??(t.token<r.length?ie(r,t.token):1/0),y=q(s,b);return!s.length||b>Math.max(s[s.length-1],
r.length?r[r.length-1]:0)?null:y>0&&(y>=s.length||b-s[y-1]<s[y]-b)?y-1:y}let i=t.token??q(r,t.second);return i>=o&&i<r.length?i:null}function te(e){return e.toLocaleString(
"en-US",{maximumSignificantDigits:4})}function Fn({x:e},t,n){let o=[],r=null;return e.forEach((s,i)=>{s===null?(o.push(t[r]),r=null):(r===null||Math.abs(s-n)<Math.
abs(e[r]-n))&&(r=i)}),o}function vt(e,t,n,o){let{head:r,series:s,hidden:i}=o,{unit:b,scale:y}=o.units[t],p=me(e,o),l=u=>!u.kind||p.includes(u.kind),[a]=e.lines.
filter(u=>!u.curve),f=J(e).filter(l),m=e.lines.filter(u=>u.curve&&u.at!=="sample"&&l(u));return r.arms.flatMap((u,h)=>{let g=jn(a,n,s[h],W(a,r));if(g===null||i.
has(u.name)||!f.length)return[];let x=f.map(c=>s[h][c.column][g]*c.scale*y),d=[x.map((c,v)=>te(c)+(f.length>1?" "+f[v].kind:"")).join(" + ")+" "+b],k=m.filter(c=>u[c.
curve]);if(k.length){let c=k.reduce((M,L)=>M+pe(u[L.curve].x,u[L.curve][L.column],g+Ie(L,u))*L.scale*y,0),v=Math.abs(c-x.reduce((M,L)=>M+L,0))<5e-4*c;d.push(k[0].
curve==="floor"?"roofline bound "+te(c):v?"as predicted":"predicted "+te(c))}for(let c of e.lines.filter(v=>v.curve&&v.at==="sample"&&u[v.curve])){let v=Fn(u[c.
curve],u[c.curve][c.column],s[h].st[g]);d.push(c.label+" "+v.map(M=>te(M*c.scale*y)).join(", "))}return a.at==="token"&&n.token===void 0&&d.push(Ae(r)+" "+I(g)),
e.lines.some(c=>c.at==="length")&&d.push(I(u.prompt_tokens+g)+" tokens cached"),[{arm:u.name,text:d.join(", ")}]})}function Ae(e){return e.unit==="forward"?"pas\
s":"token"}function Mt(e,t,n,o,{head:r,series:s,hidden:i,axis:b,units:y,tops:p}){let[l]=J(e),a=W(l,r),f=p[t]===null?1/0:p[t]/l.scale/y[t].scale,m=null,u=o;return e.
annotations&&r.arms.forEach((h,g)=>{if(i.has(h.name))return;let x=s[g][l.column],d=new Set(h.marks.map(M=>M.token)),k=Z(l,b,s[g]),[c,v]=Le(l,b,s[g],[n-o,n+o]);for(let M=Math.
max(a,c);M<=Math.min(v,x.length-1);M++){let L=Math.abs(k(M)-n);L<=u&&(d.has(M)||x[M]>f)&&(u=L,m=k(M))}}),b==="second"?{second:Math.max(0,m??n)}:{token:m??Math.max(
0,Math.round(n))}}function Tt(e,{head:t,series:n,hidden:o}){return t.arms.flatMap((r,s)=>{let i=e.token??q(n[s].t,e.second);return o.has(r.name)?[]:r.marks.filter(
b=>b.token===i&&i<n[s].t.length).map(b=>r.name+" "+Ae(t)+" "+I(i)+": "+b.text)})}var Dn=5;function _t(e,t,n,o){let r=null,s=null,i=null,b=h=>[e._fullLayout["xaxis"+U(h)],e._fullLayout["yaxis"+U(h)]];function y(h){let g=e.getBoundingClientRect(),
x=h.clientX-g.left,d=h.clientY-g.top;for(let k=0;k<o.length;k++){let[c,v]=b(k);if(x<c._offset||x>c._offset+c._length||d<v._offset||d>v._offset+v._length)continue;
let M=x-c._offset;return{i:k,x:c.p2l(M),reach:Math.abs(c.p2l(M+Dn)-c.p2l(M))}}return null}function p(h){let g=i&&i.head&&e._fullLayout?y(h):null;r=g&&Mt(o[g.i],
g.i,g.x,g.reach,i),u()}function l(){r&&(r=null,u())}function a(h,g,x){let[d,k]=b(h);if(g===null||g<d.range[0]||g>d.range[1])return[];let c=w("i","td-moment "+x);
return Object.assign(c.style,{left:d._offset+d.l2p(g)+"px",top:k._offset+"px",height:k._length+"px"}),[c]}function f(h,g,x){let[d,k]=b(h),c=w("span","td-place",
x),v=Math.min(d._length,Math.max(0,d.l2p(g)));return Object.assign(c.style,{left:d._offset+v+"px",top:k._offset+k._length+1+"px",transform:"translateX(-"+100*v/
d._length+"%)"}),c}function m(h,g){let x=vt(o[h],h,g,i),[d,k]=b(h);if(!x.length)return[];let c=w("div","td-readout");Object.assign(c.style,{left:d._offset-4+"px",
width:d._length+8+"px",bottom:"calc(100% - "+k._offset+"px)"}),i.titles[h]&&c.append(w("strong","",i.titles[h]));for(let{arm:v,text:M}of x){let L=w("span","arm-"+
v.toLowerCase());L.append(w("b","td-arm",v),document.createTextNode(M)),c.append(L)}return[c]}function u(){let h=r||(s===null?null:{second:s}),g=[],x=h&&i&&i.head&&
e._fullLayout&&e._fullLayout.xaxis;x&&o.forEach((k,c)=>{if(!i.series.some(M=>M.t.length||M.st.length))return;let v=r?r.token??r.second:i.axis==="second"?s:null;
r?g.push(...a(c,v,"")):i.series.forEach((M,L)=>g.push(...a(c,dt(i.axis,M,s),"arm-"+i.head.arms[L].name.toLowerCase()))),v!==null&&g.push(f(c,v,i.axis==="second"?
$(v):Ae(i.head)+" "+I(v))),g.push(...m(c,h))}),t.replaceChildren(...g);let d=x?Tt(h,i):[];n.hidden=!d.length,n.replaceChildren(...d.map(k=>w("span","",k)))}return e.
addEventListener("pointermove",p),e.addEventListener("pointerdown",h=>h.pointerType==="touch"?p(h):l()),e.addEventListener("pointerleave",l),{take(h){i=h,(r||s!==
null)&&u()},pointAt(h){s=h,u()},clear(){r=null,s=null,i=null,u()}}}function Lt(e,t,n){let o=null,r=[];function s(){o=null,r=[],t.replaceChildren()}function i(a,f){s(),a.head&&(o=a,r=n.map((m,u)=>y(m,u,f)),p())}function b(a){return o&&
(o={...o,series:a}),p()}function y(a,f,m){let u=e._fullLayout["xaxis"+U(f)],h=e._fullLayout["yaxis"+U(f)],g=window.devicePixelRatio,x=w("canvas",""),d=x.getContext(
"2d"),k=me(a,o);x.width=Math.ceil(u._length*g),x.height=Math.ceil(h._length*g),Object.assign(x.style,{left:u._offset+"px",top:h._offset+"px",width:u._length+"px",
height:h._length+"px"}),d.scale(g,g),t.append(x);let c=J(a).filter(v=>!v.kind||k.includes(v.kind)).flatMap(v=>o.series.map((M,L)=>({line:v,a:L,next:Math.max(W(v,
o.head),m[L][v.column]-1),drawnPx:0,shown:![o.head.arms[L].name,v.kind].some(C=>C&&o.hidden.has(C))})));return{x:u,y:h,pen:d,lines:c,scale:o.units[f].scale}}function p(){
return o?r.map(l).some(Boolean):!1}function l({x:a,y:f,pen:m,lines:u,scale:h}){let g=!1;for(let x of u){let{line:d,a:k}=x,c=o.series[k][d.column],v=c.length;if(!x.
shown||v-x.next<2)continue;let M=Z(d,o.axis,o.series[k]),L=ee(o.head.arms[k],k),C=a.l2p(M(x.next)),P=f.l2p(c[x.next]*d.scale*h),R=x.drawnPx;m.beginPath(),m.moveTo(
C,P);for(let X=x.next+1;X<v;X++){let D=a.l2p(M(X)),F=f.l2p(c[X]*d.scale*h);m.lineTo(D,F),R+=Math.hypot(D-C,F-P),C=D,P=F,g=g||a.autorange&&C>a._length||f.autorange&&
(P<0||P>f._length)}m.strokeStyle=L.color,m.lineWidth=d.width,m.setLineDash(L.dash==="solid"?[]:L.dash.split(",").map(parseFloat)),m.lineDashOffset=x.drawnPx,m.stroke(),
x.next=v-1,x.drawnPx=R}return g}return{take:i,follow:b,draw:p,clear:s}}function oe(){return window.Plotly?Promise.resolve():window.tokendynoPlotly??=new Promise(e=>{let t=()=>{let n=document.createElement("script");n.src=settings.plotly,
n.addEventListener("load",()=>e()),n.addEventListener("error",()=>{n.remove(),setTimeout(t,1e3)}),document.head.append(n)};t()})}var zn=760,Hn=250,Xn=420,Wn=40,Jn=()=>Math.round(Math.min(420,Math.max(200,.26*window.innerHeight))),Kn={responsive:!0,displaylogo:!1,showTips:!1,showSendToCloud:!1,
displayModeBar:!1};function St(e,t,n,o,r){let s="",i=null,b=[],y=null,p=[],l=[],a=[],f=new Set,m=!1,u=0,h="token",g=null,x=0,d=!1,k=!1,c=!1,v=!1,M=!0,L=!1,C=0,P=0,
R=10,X=300,D=1e3,F=[],We=[];function dn(A){A&&kn(),s=A,i=null,b=[],y=null,p=[],f=new Set,m=!1,M=!0,g=null,d=!1,o.clear(),r.clear()}function fn(A){t.forEach((O,N)=>{
let E="xaxis"+U(N),B=A[E+".range"]||[A[E+".range[0]"],A[E+".range[1]"]];A[E+".autorange"]?g=null:i&&B[0]!==void 0&&(g=B.map(Number))}),de()}function de(){M=!0,se(
!0)}function un(A){A!==h&&(h=A,g=g&&Pe(g,h,b),de())}function pn(A,O){if(!i||d||A.unit!=="ms")return null;let[N]=J(A),E=Se(b.map(B=>B[N.column]),W(N,i));return E===
null?null:E*N.scale*p[O].scale}function mn(A,O){if(!i||!y||A.unit!=="ms")return null;let[N]=J(A),E=W(N,i),B=b.reduce((ne,we)=>we[N.column].slice(E).reduce((Y,G)=>Math.
max(Y,G),ne),0);return B?1.05*B*N.scale*p[O].scale:null}function hn(){let A={head:i,series:b,part:y,ended:m,hidden:f,axis:h,zoom:g,units:p,ink:z("--body-text-co\
lor"),neutral:z("--body-text-color-subdued")};p=t.map((E,B)=>i?ht(E,A,g&&p[B]):null),l=t.map(pn),n.outliers.hidden=!d&&l.every(E=>E===null),n.outliers.setAttribute(
"aria-pressed",String(d)),T(n.outliers,d?"Cut outliers off":"Show outliers in full"),n.whole.hidden=g===null;for(let E of n.axes.querySelectorAll("button"))E.setAttribute(
"aria-pressed",String(E.dataset.axis===h));T(n.axes.firstElementChild,i&&i.unit==="forward"?"Passes":"Tokens");let O=pt(t,{...A,units:p,tops:l}),N=O.filter(E=>!E.
meta?.extent&&E.y.some(Number.isFinite)).map(E=>E.yaxis);return a=t.map((E,B)=>!y&&!N.includes("y"+U(B))),O}function gn(){let A=element.clientWidth<zn,O=t.length,
N=A?.13:.05,E=(1-N*(O-1))/O,B=element.clientWidth*(A?1:E)<Xn,ne=z("--body-text-color"),we=z("--border-color-primary"),Y={uirevision:s+"/"+x,datarevision:++u,paper_bgcolor:"\
rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:ne,size:11,family:z("--font")||"sans-serif"},height:A?Hn*O:Jn(),margin:{t:B?56:36,b:34,l:44,r:8,autoexpand:!1},
hovermode:!1,dragmode:"zoom",annotations:[]};return t.forEach((G,K)=>{let ke=K*(E+N),fe=A?[0,1]:[ke,ke+E],ue=A?[1-ke-E,1-ke]:[0,1],Ke=G.unit==="bytes"?p[K]&&p[K].
unit:G.unit,ye=i&&i.unit==="forward"&&G.encoder||G,be=V(ye.title||(i?i.memory_label:"memory")).slice(0,Wn),Ve=l[K]??mn(G,K);We[K]=B?"":be[0].toUpperCase()+be.slice(
1);let Qe={gridcolor:we,zeroline:!1,linecolor:we,ticks:"",automargin:!1,showticklabels:!!i&&!ye.note};Y["xaxis"+U(K)]={...Qe,domain:fe,anchor:"y"+U(K),uirevision:[
s,x,h].join("/"),...g?{range:[...g],autorange:!1}:{},title:{text:h==="second"?"seconds":i&&i.unit==="forward"?"forward pass":"token",standoff:2},nticks:6},Y["ya\
xis"+U(K)]={...Qe,domain:ue,anchor:"x"+U(K),rangemode:G.from_zero?"tozero":"normal",nticks:6,tickformat:",~r",...Ve===null?{}:{range:[0,Ve],autorange:!1},...a[K]?
{showticklabels:!1}:{}},i&&Y.annotations.push(...gt(G,K,{head:i,series:b,ended:m,axis:h,zoom:g,units:p},ne)),Y.annotations.push({text:"<b>"+be[0].toUpperCase()+
be.slice(1)+"</b>"+(Ke?", "+Ke:""),showarrow:!1,xref:"paper",yref:"paper",x:fe[0],y:ue[1],xanchor:"left",yanchor:"bottom",yshift:B?32:4,xshift:-4,font:{size:12}}),
ye.note&&Y.annotations.push({text:V(ye.note),showarrow:!1,xanchor:"center",xref:"paper",yref:"paper",x:(fe[0]+fe[1])/2,y:(ue[0]+ue[1])/2});let bn={orientation:"\
h",x:fe[B?0:1],y:ue[1],xanchor:B?"left":"right",yanchor:"bottom",bgcolor:"rgba(0,0,0,0)",font:{size:11},itemwidth:30};Y["legend"+U(K)]=bn}),Y}async function se(A){
if(!c||!M||L||document.hidden||!A&&performance.now()<C||!element.offsetParent)return;M=!1;let O=performance.now(),N=y||b,E=N.map(st),B=hn(),ne={head:i,series:b,
hidden:f,axis:h,units:p,tops:l,titles:We};L=!0;try{await Plotly.react(e,B,gn(),Kn)}finally{L=!1}yn(),ne.series===b&&(o.take(ne),r.take({...ne,series:N},E)),requestAnimationFrame(
()=>setTimeout(()=>{F.push(performance.now()-O),F.length>5&&F.shift(),P=performance.now()+X,C=performance.now()+Math.max(X,Math.min(D,Math.min(...F)*R)),window.
tokendynoProbe&&window.tokendynoProbe.painted(F[F.length-1])},0)),Je()}function xn(){M=!0,r.draw()&&(C=Math.min(C,P)),Je()}function Je(){if(!window.tokendynoProbe||
L||!i)return;let A=b.map(O=>O.t.length);requestAnimationFrame(()=>setTimeout(()=>window.tokendynoProbe.shows(A),0))}function wn(A){let O=A.data[A.curveNumber].meta.
legend;return f.delete(O)||f.add(O),de(),!1}async function kn(){k||(k=!0,await oe(),c=!0,setInterval(()=>{element.isConnected&&se(!1)},33),se(!0))}function yn(){
if(!v){v=!0,e.on("plotly_relayout",fn),e.on("plotly_legendclick",wn),e.on("plotly_legenddoubleclick",()=>!1),n.outliers.addEventListener("click",()=>{d=!d,de()});
for(let A of n.axes.querySelectorAll("button"))A.addEventListener("click",()=>un(A.dataset.axis));n.whole.addEventListener("click",()=>{g=null,x++,de()})}}return{
reset:dn,take(A,O){i=A,b=O,M=!0},end(){m=!0,M=!0,se(!0)},async picture(A){return await oe(),Plotly.downloadImage(e,{format:"png",filename:A,scale:2,width:e.clientWidth,
height:e.clientHeight})},get zoom(){return g&&(h==="token"?g:Pe(g,"token",b))},grow:xn,only(A){if(y===A)return;let O=y&&A&&A.every((N,E)=>N.t.length>=y[E].t.length);
y=A,M=!0,O&&r.follow(A)&&(C=Math.min(C,P)),se(!O)},touch(){M=!0,se(!1)},pace(A,O,N){R=A,X=O,D=N}}}var Vn=10,Qn=60,Ue=200,At=[["Shortest",0],["10%",.1],["Median",.5],["90%",.9],["99%",.99],["Longest",1]];function he(e,t){return e[Math.max(0,Math.ceil(Number((t*
e.length).toFixed(9)))-1)]}function Yn(e,t,n){let o=W({first:1},e);return t.map(({lat:r})=>Float64Array.from(r.slice(Math.max(o,n?Math.ceil(n[0]):0),n?Math.floor(
n[1])+1:r.length)).sort())}function Gn(e){let t=e.filter(p=>p.length),n=Math.min(...t.map(p=>p[0])),o=Se(t.map(p=>[...p]),0)??Math.max(...t.map(p=>p[p.length-1])),
r=t.map(p=>2*(he(p,.75)-he(p,.25))/Math.cbrt(p.length)).filter(p=>p>0),s=Math.round(Math.min(Qn,Math.max(Vn,r.length?(o-n)/Math.min(...r):0))),i=o>n?(o-n)/s:Math.
max(1e-9,.01*n),b=Array.from({length:s+1},(p,l)=>n+l*i),y=e.map(()=>new Array(s).fill(0));return e.forEach((p,l)=>{for(let a of p)a<=o&&y[l][Math.min(s-1,Math.floor(
(a-n)/i))]++}),{edges:b,shares:y.map((p,l)=>p.map(a=>a/Math.max(1,e[l].length))),beyond:e.map(p=>p.length-q(p,o*(1+1e-12)))}}function $n(e,t){let n=[];for(let o=0;o<=
Ue&&e.length;o++){let r=he(e,o/Ue);r<=t*(1+1e-12)&&n.push([r,o/Ue])}return n}function Ct(e,t,n){let o=l=>t.querySelector(l),r=o(".td-spread-plot");function s(l,a,f){
let m=Yn(l,a,f),u=l.unit==="forward"?"passes":"tokens",h=f?u+" "+I(Math.ceil(Math.max(0,f[0])))+" to "+I(Math.floor(f[1]))+", as zoomed":l.unit==="forward"?"all\
 passes":"all tokens after the first";if(T(o(".td-spread-what"),"The first run of each arm: "+h+"."),!m.some(d=>d.length)){i();return}let g=Gn(m),x=g.edges[g.edges.
length-1];T(o(".td-spread-said"),b(l,m,g,x,u)),o("table").replaceChildren(...y(l,m,u)),p(l,m,g,x,u)}function i(){T(o(".td-spread-said"),"There are no latencies \
here."),window.Plotly&&Plotly.purge(r),o("table").replaceChildren()}function b(l,a,{beyond:f},m,u){return l.arms.map(({name:h},g)=>{if(!a[g].length)return"Arm "+
h+" has none yet.";let[x,d]=[.25,.75].map(c=>te(1e3*he(a[g],c))),k=f[g]?", and "+I(f[g])+" longer than the "+te(1e3*m)+" ms that are drawn":"";return"Half of th\
e "+u+" of arm "+h+" took "+x+" to "+d+" ms"+k+"."}).join(" ")}function y(l,a,f){let m=(h,g,x)=>{let d=w("tr",x);return g.forEach((k,c)=>{let v=w(c?h:"th","",k);
v.tagName==="TH"&&(v.scope=c?"col":"row"),d.append(v)}),d},u=m("th",["ms",f[0].toUpperCase()+f.slice(1),"Mean",...At.map(([h])=>h)],"");return u.cells[0].scope=
"col",[u,...l.arms.map(({name:h},g)=>{let x=a[g],d=x.reduce((c,v)=>c+v,0)/x.length,k=At.map(([,c])=>x.length<(n[c]||1)?"needs "+n[c]:te(1e3*he(x,c)));return m("\
td",["Arm "+h,I(x.length),...x.length?[te(1e3*d),...k]:[]],"arm-"+h.toLowerCase())})]}function p(l,a,{edges:f,shares:m},u,h){let g=z("--body-text-color"),x=z("-\
-border-color-primary"),d=f.map(C=>1e3*C),k=l.arms.flatMap(({name:C},P)=>{let R={width:1.6,...ee(l.arms[P],P)},X=$n(a[P],u),D={type:"scatter",mode:"lines",name:V(
C),line:R,hoverinfo:"skip"};return[{...D,x:d,y:[...m[P].map(F=>100*F),0],line:{...R,shape:"hv"},fill:"tozeroy",fillcolor:R.color+"30"},{...D,x:X.map(F=>1e3*F[0]),
y:X.map(F=>100*F[1]),line:{...R,shape:"hv"},xaxis:"x2",yaxis:"y2",showlegend:!1}]}),c=.02*(d[d.length-1]-d[0]),v=[d[0]-c,d[d.length-1]+c],M={gridcolor:x,linecolor:x,
zeroline:!1,nticks:6,fixedrange:!0},L=C=>({text:C,standoff:4});oe().then(()=>Plotly.react(r,k,{paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{
color:g,size:11,family:z("--font")||"sans-serif"},height:260,margin:{t:24,b:38,l:46,r:8},hovermode:!1,legend:{orientation:"h",x:1,xanchor:"right",y:1,yanchor:"b\
ottom"},xaxis:{...M,range:v,domain:[0,.47],title:L("latency, ms")},yaxis:{...M,title:L("% of "+h),rangemode:"tozero"},xaxis2:{...M,domain:[.55,1],anchor:"y2",matches:"\
x",title:L("latency, ms")},yaxis2:{...M,anchor:"x2",title:L("cumulative %"),range:[0,101]}},{staticPlot:!0,responsive:!0,showSendToCloud:!1}))}return{show:s,openOn(l){
e.addEventListener("click",()=>{l()&&(t.showModal(),s(...l()))}),t.querySelector(".td-close").addEventListener("click",()=>t.close()),t.addEventListener("click",
a=>{a.target===t&&t.close()})},follow(l){t.open&&l()&&s(...l())}}}var Zn=3,eo=8e3;function Et(e,t,n){let o=60,r=0,s=!1,i=0,b=0,y=0,p=0,l=!1,a=!1;function f(g){return new Promise((x,d)=>{let k=setTimeout(()=>d(new Error("no ans\
wer")),eo);g.then(c=>{clearTimeout(k),x(c)},c=>{clearTimeout(k),d(c)})})}async function m(){let g=p;i++;try{let x="more";for(;x==="more";){let d=await f(e());if(g!==
p)return;a=!0,b&&(b=0,y=0,n("")),x=t(d)}x==="over"&&(l=!1)}catch{if(g!==p||!l)return;b++;let x=Math.min(1e4,250*2**b);y=performance.now()+x,n("The server does n\
ot answer. Retrying in "+$(x/1e3)+"; nothing is lost.")}finally{i--}}async function u(){if(!element.isConnected)return;let g=b||!a||s?1:Zn,x=l&&!document.hidden&&
i<g&&performance.now()>=y,d=x&&m();s&&await d,setTimeout(u,Math.max(o,r))}setTimeout(u,0),document.addEventListener("visibilitychange",()=>{!document.hidden&&element.
isConnected&&l&&i===0&&(y=0,m())});function h(){p++,b=0,y=0,a=!1,l=!0,n(""),document.hidden||m()}return{begin:h,stop(){p++,l=!1},every(g,x=!1){o=g,s=x},atLeast(g){
r=g},get running(){return l}}}var Pt=4e3;function to(e,t,n){let o=q(e.t,n);if(o>=e.t.length)return e.n.length?e.n[e.n.length-1]:0;let r=o?[e.t[o-1],e.n[o-1]]:[t,0];return n<=r[0]?r[1]:Math.floor(
r[1]+(e.n[o]-r[1])*(n-r[0])/(e.t[o]-r[0]))}function no(e,t){let n=Ot(e.t,t),o=Ot(e.st,t),r={...e};for(let s of _e)r[s]=e[s].slice(0,n);for(let s of["st","sm"])r[s]=
e[s].slice(0,o);return r}function Ot(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<=t?n=r+1:o=r}return n}function Nt(e,t,n,o,r,s){let i=null,b=[],y=0,p=0,
l=!1,a=0;function f(d,k){i=d,b=k,y=Math.max(0,...b.map(v=>v.t.length?v.t[v.t.length-1]:0));let c=y>0&&i.unit!=="forward"&&i.arms.some(v=>v.pace.t.length);e.disabled=
t.disabled=o.disabled=!c,t.max=String(y),c&&(p=y,t.value=String(y),m())}function m(){T(e,l?"❚❚ Pause":"▶ Race");let d=i?i.arms.filter((c,v)=>b[v].t.length&&
p>=b[v].t[b[v].t.length-1]).map(c=>c.name):[],k=p<y&&d.length?", "+d.join(" and ")+" done":"";T(n,y?p.toFixed(y>=100?0:y>=10?1:2)+" of "+$(y)+k:""),t.setAttribute(
"aria-valuetext",$(p))}function u(){p>=y?(r.whole(),s(null,null)):(i.arms.forEach((d,k)=>r.upTo(k,b[k].t.length?to(d.pace,b[k].t[0],p):0)),s(p,b.map(d=>no(d,p)))),
m()}function h(d){if(!l||!element.isConnected)return;let k=Math.max(0,d-a);p=Math.min(y,p+k/1e3*Number(o.value)),a=d,p>=y&&(l=!1),t.value=String(p),u(),l&&requestAnimationFrame(
h)}function g(){l=!1,y=0,p=0,i=null,b=[],e.disabled=t.disabled=o.disabled=!0,t.value="0",s(null,null),m()}function x(){e.disabled||(l=!l,l&&(p>=y&&(p=0),a=performance.
now(),requestAnimationFrame(h)),u())}return e.addEventListener("click",x),t.addEventListener("input",()=>{l=!1,p=Number(t.value),u()}),{ready:f,clear:g,toggle:x}}var oo=5e3,ro=3e3;function Rt(e){let t=[],n=null,o=[];function r(a,f){if(e.replaceChildren(),o=[],f==="forward"){t=[],e.append(w("p","td-empty","An encoder gene\
rates no text: its forward passes are timed."));return}t=a.map(m=>{let u=w("section","td-text arm-"+m.name.toLowerCase()),h=w("div","td-scroll");h.tabIndex=0,h.
setAttribute("role","region"),h.setAttribute("aria-label","Text of arm "+m.name);let g=w("div","td-body");return g.append(document.createTextNode("")),h.append(
g),u.append(h),e.append(u),{body:g}}),n=w("p","td-text-comparison",""),e.append(n)}function s(a,f){if(!f||!t[a])return;let m=t[a].body.firstChild;m.appendData(f),
m.length>oo&&m.deleteData(0,m.length-ro)}function i(a,f,m){if(!t[a])return;o[a]={text:f,difference:m};let u=t[a].body;if(u.replaceChildren(),m<0){u.append(document.
createTextNode(f));return}let h=w("span","td-divergent"),g=w("mark","td-difference","≠");g.title="The texts differ from here on.",h.append(document.createTextNode(
f.slice(m))),u.append(document.createTextNode(f.slice(0,m)),g,h)}function b(){for(let{body:a}of t){let f=a.parentElement,m=a.querySelector(".td-difference");m&&
(f.scrollTop+=m.getBoundingClientRect().top-f.getBoundingClientRect().top-f.clientHeight/3)}}function y(a,f){if(!t.length)return;let m=a.map(k=>k.text),[u,h]=m,
g=m.length<2?-1:lt(u,h);if(m.forEach((k,c)=>{i(c,k,g),t[c].body.closest(".td-text").classList.toggle("td-unwritten",!k)}),b(),m.length<2)return;let x=Math.min(u.
length,h.length),d=g<0&&u.length===h.length;x?d?T(n,"The texts are identical."):g<0?T(n,"The first "+I(x)+" characters are identical; one text is longer."):f?.startsWith(
"The texts differ")?T(n,"Marked ≠: "+f):T(n,"The texts first differ at character "+I(g+1)+", marked ≠. "+(f||"")):T(n,"")}function p(a,f){if(!t[a]||!o[a])return;
let m=o[a].text.slice(0,f),u=document.createTextNode(m.slice(-Pt));t[a].body.replaceChildren(u)}function l(){t.forEach((a,f)=>{o[f]&&i(f,o[f].text,o[f].difference)}),
b()}return{build:r,append:s,finish:y,upTo:p,whole:l}}function It(e){let t=null,n=[],o=0;function r(l){e.replaceChildren(),n=l.map(a=>{let f=w("div","td-phases arm-"+a.name.toLowerCase()),m=w("span","td-steps"),u=w(
"i","td-phase-bar");return f.append(w("span","td-arm",a.name),w("b","td-label",a.label),m,u),e.append(f),{steps:m,bar:u,chips:new Map}})}function s(l,a,f){let m=l.
state==="begin"||l.state==="step",u=l.title+" "+$(m?Math.max(l.seconds,a-l.begin_s):l.seconds);return l.name==="run"&&!(t.quality&&!f)?u+=", "+I(f)+" of "+I(t.max_new_tokens)+
(t.unit==="forward"?" passes":" tokens"):m&&l.fraction!==null&&(u+=", "+Math.round(100*l.fraction)+"%"),l.wait&&(u+=", "+l.wait),m&&l.note&&(u+=" ("+l.note+")"),
l.state==="broken"?"✕ "+u:u}function i(l,a){return l.expected_s?Math.min(.95,(a-l.begin_s)/l.expected_s):0}function b(l,a){if(!t)return;let f=t.now_s+(performance.
now()-o)/1e3;t.arms.forEach((m,u)=>{let h=n[u];if(!m.phases.length){T(h.steps,a?"did not run":u?"waiting for arm "+t.arms[u-1].name:"waiting");return}h.chips.size||
h.steps.replaceChildren();for(let k of m.phases){let c=h.chips.get(k.name);c||(c=w("span",""),h.chips.set(k.name,c),h.steps.append(c));let v="td-step "+k.state;
c.className!==v&&(c.className=v),T(c,s(k,f,l[u].t.length))}let g=m.phases[m.phases.length-1],x=g.name==="run"?l[u].t.length/t.max_new_tokens:g.fraction||i(g,f),
d=m.state==="working"?(100*Math.min(1,x)).toFixed(1)+"%":"0";h.bar.style.width!==d&&(h.bar.style.width=d)})}function y(l){t=l,o=performance.now()}function p(){t=
null,n=[],e.replaceChildren()}return{build:r,take:y,tick:b,clear:p}}function Bt(e,t,n,o,r,s){function i(l,a){T(e,y(l,a)),e.classList.toggle("td-underway",!l.verdict.sentence),T(t,l.verdict.basis),T(o,l.verdict.unasked),s&&T(s,l.
verdict.pays),b(l.verdict),n.hidden=!l.digest,l.digest&&(n.className="td-digest "+l.digest.status,T(n,l.digest.line))}function b({gate:l,gate_run:a}){!r||r.textContent===
(l||"")||(r.replaceChildren(),r.title=l||"",l&&(a?r.append(Object.assign(w("a","td-gate-line",l),{href:"?"+new URLSearchParams({run:a})})):r.append(w("span","td\
-gate-line",l))))}function y(l,a){if(l.verdict.sentence)return l.verdict.sentence;if(a==="queued")return"Waiting for the runs before this one.";if(a!=="running")
return a==="done"?"The run is complete.":a==="cancelled"?"Stopped before both arms were complete: no verdict.":"";let f=l.arms.find(h=>h.state==="working");if(!f)
return"Starting.";let m=l.arms.filter(h=>h.state==="waiting").map(h=>h.name),u=f.phases.at(-1);return"Running arm "+f.name+(u?": "+u.title:"")+(m.length?"; then\
 arm "+m.join(" and ")+".":".")}function p(){T(e,""),T(t,""),T(o,""),s&&T(s,""),b({gate:"",gate_run:""}),n.hidden=!0}return{take:i,clear:p}}function Ut(e,t){let n=w("div","td-said"),o=w("div","td-four"),r=w("div","td-advice"),s=w("p","td-lead"),i=w("p","td-number"),b=w("p","td-tail"),y=w("div","td-s\
cale"),p=w("p","td-badge-said"),l=w("p","td-reason"),a=w("p","td-reason td-cost"),f=w("button","td-next");f.type="button";let m=w("div","td-ratio");m.append(i,y),
n.append(s,m,b),r.append(p,l,a,f),e.append(n,o,r);let u=null;f.addEventListener("click",()=>{t&&u?.next&&t(u.next)});function h(d){u=d,e.hidden=!d,d&&(e.className=
"td-answer "+d.tone+(d.decided?" td-decided":""),T(s,d.lead),T(i,d.figure),T(b,d.tail),x(d),o.replaceChildren(...d.tiles.map(g)),T(p,d.recommendation),T(l,d.reason),
T(a,d.cost),a.hidden=!d.cost,f.hidden=!t||!d.next,d.next&&T(f,d.next.label))}function g(d){let k=w("div","td-one"),c=w("p","td-values");return c.append(w("b",d.
b?"arm-a":"",d.a)),d.b&&c.append(w("span",""," → "),w("b","arm-b",d.b)),d.unit&&c.append(w("small",""," "+d.unit)),k.append(w("h3","",d.title),c,w("p","td-one\
-note",d.note)),k}function x(d){if(y.replaceChildren(w("p","td-ends",d.ends||(d.pairs.length===1?"one pair, no interval yet":""))),d.low===null||d.high===null)return;
let k=so(d),c=w("div","td-axis-line"),v=C=>100*(Math.log(C)-k.from)/(k.to-k.from)+"%",M=w("i","td-band");M.style.left=v(Math.max(d.low,Math.exp(k.from))),M.style.
right="calc(100% - "+v(Math.min(d.high,Math.exp(k.to)))+")",c.append(M,...d.pairs.map(C=>Object.assign(w("i","td-pair"),{style:"left:"+v(C)}))),k.from<0&&k.to>0&&
c.append(Object.assign(w("i","td-even"),{style:"left:"+v(1),title:"as fast"})),c.append(Object.assign(w("i","td-middle"),{style:"left:"+v(d.ratio)}));let L=w("d\
iv","td-ticks");for(let C of[Math.exp(k.from),Math.exp(k.to)])L.append(w("span","",ao(C)));y.append(c,L)}return{take:h,clear:()=>h(null)}}function qt(e,t,n){let o=s=>document.
querySelector(s);if(e.action==="run"){o(t)?.click();return}let r=n+e.arm.toLowerCase();o(r)?.scrollIntoView({block:"start"}),o(r+" button")?.focus({preventScroll:!0})}
function so(e){let t=e.pairs.map(Math.log),n=Math.log(e.ratio),o=Math.max(.01,Math.max(...t)-n,n-Math.min(...t)),r=Math.min(4*o,Math.max(Math.log(e.high)-n,n-Math.
log(e.low))),s=1.15*Math.max(o,r);return{from:n-s,to:n+s}}function ao(e){return(e>=10?e.toFixed(1):e.toFixed(2))+"×"}var jt=[["title","Text",""],["positions","Positions","tokens that both arms were asked to predict"],["a","Perplexity A",""],["b","Perplexity B",""],["ratio","B \
/ A","perplexity of B / perplexity of A"],["kl","KL, nats","mean divergence of B from A"],["largest","Largest KL","at a single position"],["agreement","Agreemen\
t","positions at which both find the same token most likely"],["divergence","First divergence","first position at which they do not"]];function Ft(e){let t="";function n(s){
let i=JSON.stringify(s);if(i===t||(t=i,e.hidden=!s,e.replaceChildren(),!s)||(e.append(w("h3","","Quality on given texts")),e.append(o(s.rows)),s.progress&&e.append(
w("p","td-quality-progress",s.progress)),s.note&&e.append(w("p","",s.note)),!s.compared))return;let b=w("p",""),y=w("a","td-compared","The comparison of these a\
rms");y.href="?"+new URLSearchParams({run:s.compared}),b.append(y,document.createTextNode(" names this cost beside its gain.")),e.append(b)}function o(s){let i=w(
"div","td-quality-rows"),b=w("table",""),y=w("tr",""),p=w("thead",""),l=w("tbody","");i.tabIndex=0,i.setAttribute("role","region"),i.setAttribute("aria-label","\
Quality by text");for(let[,a,f]of jt){let m=w("th","",a);m.scope="col",m.title=f,y.append(m)}p.append(y);for(let a of s){let f=w("tr",a===s[s.length-1]?"td-all-\
texts":""),m=w("th","",a.title);m.scope="row",f.append(m,...jt.slice(1).map(([u])=>w("td","",a[u]))),l.append(f)}return b.append(p,l),i.append(b),i}function r(){
t="",e.hidden=!0,e.replaceChildren()}return{take:n,clear:r}}function Dt(e){let t=new Map,n="";function o(b,y){let p=[...new Map(b.flatMap(a=>a.tiles.map(f=>[f.key,f.label])))],l=JSON.stringify([p,b.map(a=>a.name)]);n!==l&&
s(p,b,l);for(let[a]of p){let f=b.map(c=>c.tiles.find(v=>v.key===a)),{card:m,values:u,unit:h,foot:g}=t.get(a),x=[...new Set(f.map(c=>c&&c.unit).filter(Boolean))],
d=x.length===1;u.forEach((c,v)=>{let M=f[v],L=M&&M.value!=="n/a";T(c.number,L?M.value:"–"),T(c.unit,L&&!d&&M.unit?" "+M.unit:"")}),T(h,d?x[0]:"");let k=y[a];T(
g,k?k.text:r(f.map(c=>c?c.note:""))),g.className="td-foot"+(k&&k.better?" better":""),m.title=f.map((c,v)=>c&&c.note?b[v].name+": "+c.value+" "+c.unit+", "+c.note:
"").filter(Boolean).join(`
`)}}function r(b){let[y,...p]=new Set(b.filter(Boolean)),l=b.every(Boolean);return y&&!p.length&&(l||!/\d/.test(y))?y:""}function s(b,y,p){e.replaceChildren(),t=
new Map,n=p;for(let[l,a]of b){let f=w("div","td-tile"),m=w("p","td-figure"),u=w("span","td-unit",""),h=w("small","td-foot","");f.dataset.key=l;let g=y.map(x=>{let d=w(
"b","arm-"+x.name.toLowerCase()),k=w("span","",""),c=w("small","","");return d.append(k,c),m.append(w("span","td-hidden","Arm "+x.name+": "),d),{number:k,unit:c}});
m.append(u),f.append(w("h3","",a),m,h),e.append(f),t.set(l,{card:f,values:g,unit:u,foot:h})}}function i(){for(let{card:b,values:y,unit:p,foot:l}of t.values())b.
title="",y.forEach(a=>{T(a.number,"–"),T(a.unit,"")}),T(p,""),T(l,"")}return{take:o,clear:i}}function zt(e){let t="";function n(s){let i=s.filter(f=>f.details.length),b=JSON.stringify(i.map(f=>[f.name,f.details]));if(b===t)return;if(t=b,e.replaceChildren(),
!i.length){e.append(w("p","td-empty","Percentiles, intervals and readings of the machine appear here once an arm has finished."));return}let y=w("table",""),p=w(
"thead",""),l=w("tbody","");p.append(Me("Figure",i));let a=new Map(i.flatMap(f=>f.details.map(m=>[m.key,m.label])));for(let[f,m]of a){let u=w("tr",""),h=w("th",
"",m);h.scope="row",u.dataset.key=f,u.append(h,...i.map(g=>o(g.details.find(x=>x.key===f)))),l.append(u)}y.append(p,l),e.append(y)}function o(s){let i=w("td","");
return s&&(i.append(w("b","",s.value),document.createTextNode(s.unit?" "+s.unit:"")),s.note&&i.append(w("small","",s.note))),i}function r(){t="",e.replaceChildren()}
return{take:n,clear:r}}var io={verified:"✓ verified",partial:"◐ partial",no_effect:"○ no effect",fallback:"▲ fallback",failed:"✕ failed",unchecked:"◌ unchecked",off:"off",
not_applicable:"not applicable"};function Ht(e){let t="",n=!1;function o(y,p){let l=JSON.stringify([y.map(d=>d.ledger),p]);if(l===t)return;if(t=l,e.replaceChildren(),
!p){e.append(w("p","td-empty","Proof that each choice took effect appears here once an arm has finished."));return}let a=w("table",""),f=w("tr",""),m=w("thead",
""),u=w("tbody",""),h=w("caption","","Ledger");h.append(w("small","",p.line)),a.append(h);for(let d of["Axis","Arm","Requested","Planned","Effective","Status","\
Proof"]){let k=w("th","",d);k.scope="col",k.role="columnheader",f.append(k)}m.append(f);for(let[d,k]of[[m,"rowgroup"],[u,"rowgroup"],[f,"row"]])d.role=k;let g=[
...new Set(y.flatMap(d=>d.ledger.map(k=>k.axis)))];for(let d of g){let k=s(y,d);k.forEach((c,v)=>{let M=i(c,p.titles[d]||d,v?0:k.length);M.classList.toggle("td-\
quiet",!p.shown.includes(d)),u.append(M)})}let x=w("button","td-all","");x.type="button",x.addEventListener("click",()=>{n=!n,r(a,x,g.length,p)}),a.append(m,u),
e.append(a,x),r(a,x,g.length,p)}function r(y,p,l,a){let f=!n&&!a.shown.length;y.classList.toggle("td-folded",!n),y.classList.toggle("td-none",f),y.role=f?"prese\
ntation":"table",p.hidden=a.shown.length===l,T(p,n?"Only what differs or is not verified":"All "+l+" axes with their proof"),p.setAttribute("aria-expanded",String(
n))}function s(y,p){let l=new Map;for(let a of y)for(let f of a.ledger.filter(m=>m.axis===p)){let m=JSON.stringify(f);l.has(m)?l.get(m).arms.push(a.name):l.set(
m,{...f,arms:[a.name]})}return[...l.values()]}function i(y,p,l){let a=w("tr",y.status);if(a.role="row",l){let u=w("th","",p);u.scope="rowgroup",u.rowSpan=l,u.role=
"rowheader",a.append(u)}let f=w("td","td-who");for(let u of y.arms){let h=w("span","arm-"+u.toLowerCase());h.append(w("span","td-arm",u)),f.append(h)}a.append(f);
for(let u of["requested","planned","effective"]){let h=w("td","td-choice",y[u]);h.dataset.title=u,a.append(h)}a.append(w("td","td-status",io[y.status]||y.status));
let m=w("td","td-proof",y.proof);y.reason&&m.append(w("small","",y.reason)),a.append(m);for(let u of a.querySelectorAll("td"))u.role="cell";return a}function b(){
t="",n=!1,e.replaceChildren()}return{take:o,clear:b}}var Xt={ok:"",note:"Note: ",fallback:"▲ Fallback: ",blocked:"✕ Blocked: "};function Wt(e,t){let n=t.flatMap(r=>[...r.verdicts.filter(s=>s.level!=="ok").map(
s=>({arm:r.name,level:s.level,text:Xt[s.level]+s.reason})),...r.spoilers.map(s=>({arm:r.name,level:"fallback",text:"▲ "+s})),...r.notes.map(s=>({arm:r.name,level:"\
note",text:Xt.note+s}))]),o=JSON.stringify(n);e.dataset.shown!==o&&(e.dataset.shown=o,e.replaceChildren(...n.map(r=>{let s=w("li",r.level+" arm-"+r.arm.toLowerCase());
return s.append(w("span","td-arm",r.arm),document.createTextNode(r.text)),s})))}function qe(e,{of:t,title:n,hint:o,whole:r,numbers:s,lacking:i}){let b="";function y(u){let h=u.map(c=>({name:c.name,step:t(c)})).filter(c=>c.step),g=JSON.stringify(
h);if(g===b)return;b=g,e.hidden=!h.length;let x=h.filter(c=>!c.step.missing),d=Math.max(...x.map(c=>c.step.seconds)),k=w("h3","",n);if(x.some(c=>c.step.parts.some(
v=>v.reads_s!==null))&&k.append(w("span","td-part-hint",o)),e.replaceChildren(k,...x.map(c=>l(c,d))),x.length){let c=w("div","td-part-scroll");c.tabIndex=0,c.setAttribute(
"role","region"),c.setAttribute("aria-label",s),c.append(a(x)),e.append(c)}for(let c of h){let v=w("p","arm-"+c.name.toLowerCase());v.append(w("span","td-arm",c.
name),document.createTextNode(c.step.missing?i+c.step.missing+".":p(c.step.said))),e.append(v)}}function p(u){return u[0].toUpperCase()+u.slice(1)+"."}function l({
name:u,step:h},g){let x=w("div","td-part-bar arm-"+u.toLowerCase()),d=w("div","td-part-track");x.setAttribute("aria-hidden","true");for(let k of h.parts){if(!k.
seconds)continue;let c=w("span","td-part-piece td-part "+k.key);if(c.style.width=100*k.seconds/g+"%",c.title=[k.label+" "+k.text,k.reads].filter(Boolean).join("\
, "),k.reads_s!==null){let v=w("i","td-part-need");v.style.width=Math.min(100,100*k.reads_s/k.seconds)+"%",c.append(v)}d.append(c)}return x.append(w("span","td-\
arm",u),d),x}function a(u){let h=w("table",""),g=w("thead",""),x=w("tbody","");g.append(Me("Part",u));let d=[];for(let v of u){let M=0;for(let L of v.step.parts){
let C=d.findIndex(P=>P.key===L.key);C<0?d.splice(M++,0,L):M=C+1}}for(let{key:v,label:M}of d){let L=w("tr",""),C=w("th","");L.dataset.key=v,C.scope="row",C.append(
w("i","td-part-key td-part "+v),document.createTextNode(M)),L.append(C,...u.map(P=>f(P.step.parts.find(R=>R.key===v)))),x.append(L)}let k=w("tr",""),c=w("th","",
r);return c.scope="row",k.append(c,...u.map(v=>w("td","",v.step.text))),x.append(k),h.append(g,x),h}function f(u){let h=w("td","");return u&&(h.append(w("b","",
u.text),document.createTextNode(u.seconds===null?"":" "+Math.round(100*u.share)+"%")),u.reads&&h.append(w("small","",u.reads))),h}function m(){b="",e.hidden=!0,
e.replaceChildren()}return{take:y,clear:m}}function Jt(e){let t="",n=null;function o(i){let b=JSON.stringify(i.crossing??null);if(b===t)return;if(t=b,n=i.crossing?i:null,e.hidden=!n,!n){e.replaceChildren();
return}let y=w("h3","","When does waiting pay?");y.append(w("span","td-part-hint","seconds since the imports were done, over "+(i.unit==="forward"?"forward pass\
es":"tokens written")));let p=w("div","td-crossing-plot");p.setAttribute("aria-hidden","true"),e.replaceChildren(y,p),r()}function r(){if(!n)return;let{arms:i,crossing:{
starts_s:b,steps_s:y,tokens:p,label:l}}=n,a=e.querySelector(".td-crossing-plot"),f=z("--body-text-color"),m=z("--border-color-primary"),u=2*p,h=(c,v)=>b[c]+v*y[c],
g=Math.max(...i.map((c,v)=>h(v,u))),x=i.map((c,v)=>({type:"scatter",mode:"lines",name:"Arm "+V(c.name),line:{width:2,...ee(c,v)},x:[0,u],y:[h(v,0),h(v,u)]})),d=h(
0,p),k={gridcolor:m,linecolor:m,zeroline:!1,nticks:6,fixedrange:!0};x.push({type:"scatter",mode:"markers",x:[p],y:[d],marker:{size:9,color:z("--body-background-\
fill"),line:{width:2,color:f}},showlegend:!1}),oe().then(()=>Plotly.react(a,x,{paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:f,size:11,
family:z("--font")||"sans-serif"},height:220,margin:{t:24,b:38,l:46,r:8},hovermode:!1,legend:{orientation:"h",x:1,xanchor:"right",y:1,yanchor:"bottom"},xaxis:{...k,
range:[0,u],tickformat:",",title:{text:n.unit==="forward"?"forward passes":"tokens",standoff:4}},yaxis:{...k,range:[0,1.05*g],ticksuffix:" s"},annotations:[{x:p,
y:d,text:"<b>"+V(l)+"</b>",showarrow:!1,yanchor:"top",xanchor:"left",xshift:8,yshift:-6}]},{staticPlot:!0,responsive:!0,showSendToCloud:!1}))}function s(){o({})}
return ve(r),{take:o,clear:s}}var lo="Press Run: both arms write your prompt in turn, until it is decided which is faster. Texts, speed, memory and KV cache appear here as they are written, \
with proof that each choice took effect.",Kt=new URLSearchParams(location.search).get("pace"),co=75,fo=60,Qt=_t(_(".td-plot"),_(".td-moments"),_(".td-noted"),settings.
charts),uo={outliers:_(".td-outliers"),axes:_(".td-axis"),whole:_(".td-whole")},po=Lt(_(".td-plot"),_(".td-fresh"),settings.charts),Q=St(_(".td-plot"),settings.
charts,uo,Qt,po),Ee=Rt(_(".td-texts")),je=Nt(_(".td-race"),_(".td-scrub"),_(".td-clock"),_(".td-speed"),Ee,(e,t)=>{Q.only(t),Qt.pointAt(e)}),Yt=Ct(_(".td-distri\
bution"),_(".td-spread"),settings.fewest),Gt=()=>S&&[S,j,Q.zoom],xe=It(_(".td-progress")),De=Bt(_(".td-sentence"),_(".td-basis"),_(".td-digest"),_(".td-unasked"),
_(".td-gate"),_(".td-pays")),ze=Ut(_(".td-answer"),settings.links?e=>qt(e,"#run","#code-"):null),$t=Ft(_(".td-quality")),Zt=Dt(_(".td-tiles")),en=zt(_(".td-rows")),
tn=Ht(_(".td-ledger")),nn=qe(_(".td-parts"),{of:e=>e.step,title:"Where the time of a step goes",hint:"the line under a part is the time that its bytes need",whole:"\
Measured",numbers:"Parts of a step as numbers",lacking:"Not traced: "}),on=qe(_(".td-start"),{of:e=>e.start,title:"From process to first token",whole:"Together",
numbers:"Parts of a start as numbers"}),rn=Jt(_(".td-crossing")),j=[],S=null,H="",He=-1,sn=0,Fe=0,ce=!1,Xe=!1,re=!1,ge=!1,Ce=Et(mo,ho,e=>T(_(".td-connection"),e));
async function mo(){let e=++sn,t=H,n=j.length?j.map(Oe):[[0,0,0],[0,0,0]];ce&&n.forEach(s=>{s[2]=0});let o=ge&&!ce&&!Xe?fo:0,r=JSON.parse(await server.pull({run:t,
version:He,cur:n,wait_ms:o}));return r.seq=e,r}function ho(e){if(e.error)return Ze(H,e.error),"over";if(e.run!==H||re)return re?"over":"wait";if(e.head&&e.seq>Fe&&
(Fe=e.seq,go(e)),!S)return"wait";$e(e.status,e.queue),tt(e.trouble),Ce.atLeast(e.every_ms);let t=!1,n=!1;return e.lanes.forEach((o,r)=>{if(!j[r])return;ce&&o.cfirst===
0&&it(j[r],o);let s=at(j[r],o);Ee.append(r,s.added),n=n||s.tokens>0||s.samples>0,t=t||o.n-o.first>=settings.most}),Xe=t,n&&(Q.grow(),Yt.follow(Gt)),window.tokendynoProbe&&
window.tokendynoProbe.arrived(j.map(o=>o.t.length)),e.ended?ce?e.lanes.every(o=>o.cfirst===0)?(xo(e),"over"):"more":(ce=!0,"more"):t?"more":"wait"}function go(e){
let t=!S;S=e.head,He=e.version,t&&(j=S.arms.map(rt),Ee.build(S.arms,S.unit),xe.build(S.arms),element.classList.toggle("single",S.arms.length===1),T(_(".td-empty\
-run"),""),ae(!1)),T(_(".td-title"),S.title),T(_(".td-note"),S.note),xe.take(S),De.take(S,e.status),ze.take(S.card),_(".td-verdict").classList.toggle("td-carded",
!!S.card),T(_(".td-sure"),S.card?S.card.confidence:""),settings.links&&window.tokendynoAddress?.title("compare",S.heading),$t.take(S.quality),element.classList.
toggle("td-reads",!!S.quality),Zt.take(S.arms,S.differences),en.take(S.arms);let n=S.arms.filter(r=>r.spoilers.length).map(r=>r.name);T(_(".td-interference"),n.
length?"▲ Possible interference ("+n.join(" and ")+")":""),Be(_(".td-annotations"),S.arms,S.unit),tn.take(S.arms,S.digest),nn.take(S.arms),on.take(S.arms),rn.
take(S),Wt(_(".td-remarks"),S.arms),nt(e.status,S.message)&&ae(!S.arms.some(r=>r.prompt_tokens)),Q.take(S,j),an(e.ended)}function an(e){ge=!e&&(Kt?Kt==="quiet":
S.quiet&&Ge),Q.pace(...ge?[60,1e3,6e3]:[10,300,1e3]),Ce.every(...ge?[co,!0]:[60,!1])}async function Vt(){let e=H;if(!(re&&!document.hidden&&S.verdict.gate&&!S.verdict.
gate_run))return;let n=JSON.parse(await server.pull({run:e,version:-1,cur:j.map(Oe),anew:!0}).catch(()=>"{}"));!n.head||e!==H||!re||(S.verdict=n.head.verdict,S.
card=n.head.card,De.take(S,n.status),ze.take(S.card))}function xo(e){re=!0,an(!0),xe.tick(j,!0),Ee.finish(j,S.texts),Q.end(),je.ready(S,j),element.dataset.status=
e.status,element.dataset.over=e.run,trigger("finished",{run:e.run,status:e.status}),settings.replays&&!matchMedia("(prefers-reduced-motion: reduce)").matches&&je.
toggle()}function ln(e){if(H=e||"",j=[],S=null,He=-1,Fe=sn,ce=!1,Xe=!1,re=!1,et(H,["interference","sure"]),_(".td-verdict").classList.remove("td-carded"),element.
classList.remove("td-reads"),settings.links&&window.dispatchEvent(new Event("tokendyno-run")),settings.links&&window.tokendynoAddress?.title("compare",""),_(".t\
d-texts").replaceChildren(),Be(_(".td-annotations"),[]),je.clear(),xe.clear(),De.clear(),ze.clear(),$t.clear(),Zt.clear(),en.clear(),tn.clear(),nn.clear(),on.clear(),
rn.clear(),Q.reset(H),T(_(".td-empty-run"),H||!settings.links?"":[lo,settings.first].filter(Boolean).join(" ")),H||ae(!0),settings.links&&ot(H),!H){Ce.stop();return}
Ce.begin()}function cn(){element.isConnected&&(S&&!re&&!document.hidden&&xe.tick(j),setTimeout(cn,ge?1e3:100))}Yt.openOn(Gt);_(".td-csv").addEventListener("clic\
k",()=>{S&&bt(yt(S,j),"tokendyno-"+H+".csv")});_(".td-png").addEventListener("click",()=>{S&&Q.picture("tokendyno-"+H)});ve(()=>Q.touch());settings.links&&(window.
addEventListener("tokendyno-measured",Vt),document.addEventListener("visibilitychange",Vt));new ResizeObserver(()=>Q.touch()).observe(element);element.classList.
add("td-live");element.live={get series(){return j},get head(){return S}};watch("value",()=>{(props.value||"")!==H&&ln(props.value)});ae(!0);ln(props.value);cn();})();
