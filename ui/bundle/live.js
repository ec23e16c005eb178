"use strict";(()=>{var ve=e=>{new MutationObserver(()=>e()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};function b(e,t,n){let o=document.createElement(e);return t&&(o.className=t),n!==void 0&&(o.textContent=n),o}function Me(e,t){let n=b("tr","");n.append(b("th","",
e),...t.map(o=>{let r=b("th","arm-"+o.name.toLowerCase());return r.append(b("span","td-arm",o.name)),r}));for(let o of n.querySelectorAll("th"))o.scope="col";return n}
function _(e,t){e.textContent!==t&&(e.textContent=t)}function T(e){return element.querySelector(e)}function z(e){return getComputedStyle(element).getPropertyValue(
e).trim()}function I(e){return e.toLocaleString("en-US")}function $(e){return e>=100?Math.round(e)+" s":e.toFixed(e>=10?1:2)+" s"}function Qe(e){return e>=4*2**
30?{unit:"GiB",scale:1/2**30}:e>=2*2**20?{unit:"MiB",scale:1/2**20}:{unit:"KiB",scale:1/1024}}var kn={queued:"Queued",running:"Running",done:"Done",failed:"Failed",cancelled:"Stopped",interrupted:"Interrupted"},Ye=/^(localhost|127(\.\d+){3}|\[::1\])$/.test(
location.hostname);function Ge(e,t){_(T(".td-status"),kn[e]||e),e==="queued"&&t&&_(T(".td-message"),t),element.dataset.status=e}function ae(e){element.classList.
toggle("td-bare",e)}function $e(e,t){for(let n of["status","empty-run"])_(T(".td-"+n),"");_(T(".td-failure"),t),ae(!0),trigger("finished",{run:e,status:"unknown"})}
function Ze(e,t){for(let n of["status","over"])delete element.dataset[n];element.dataset.run=e;for(let n of["status","title","note","failure","message","connect\
ion","unkept",...t])_(T(".td-"+n),"");T(".td-remarks").replaceChildren(),delete T(".td-remarks").dataset.shown}function et(e){_(T(".td-unkept"),e?"▲ "+e:"")}function tt(e,t){
let n=e==="failed"||e==="interrupted";return _(T(".td-failure"),n?t||"The run ended unexpectedly.":""),_(T(".td-message"),n?"":t),n}function Te(e){return T(e)}function nt(e){
if(T(".td-link").hidden=T(".td-files").hidden=!e,!e)return;let t=new URL(location.href);t.search="?"+new URLSearchParams({run:e}),t.hash="",Te(".td-permalink").
href=t.href,_(T(".td-permalink"),t.search),Te(".td-kept").href="?"+new URLSearchParams({view:"history",q:e}),T(".td-kept").hidden=e.startsWith("recorded-");for(let r of[
"dyno","html","json"])Te(".td-file-"+r).href="files/"+encodeURIComponent(e)+"."+r;T(".td-file-html").hidden=!T(".td-plot");let n=new URL(location.href),o=n.searchParams.
get("view")||window.tokendynoAddress?.page;if(o&&o!=="compare"&&o!=="batching"){window.tokendynoAddress?.note(element.closest("#batch-live")?"batching":"compare",
e);return}n.searchParams.set("run",e);for(let r of["worth","sweep"])n.searchParams.delete(r);n.href!==location.href&&history.replaceState(history.state,"",n.href)}
async function yn(){let{href:e}=Te(".td-permalink");try{await navigator.clipboard.writeText(e),_(T(".td-copied"),"Copied")}catch{window.prompt("Copy this link:",
e)}setTimeout(()=>_(T(".td-copied"),""),2e3)}T(".td-copy").addEventListener("click",yn);var _e=["t","lat","kvs","kvf"];function ot(){return{t:[],lat:[],kvs:[],kvf:[],st:[],sm:[],text:"",chars:0}}function Oe(e){return[e.t.length,e.st.length,e.chars]}
function rt(e){return Object.fromEntries([..._e,"st","sm"].map(t=>[t,e[t].length]))}function st(e,t){let n={tokens:0,samples:0,added:""},o=e.t.length;if(t.first<=
o&&t.n>o){for(let s of _e){let i=e[s],w=t[s];for(let k=o-t.first;k<w.length;k++)i.push(w[k])}n.tokens=t.n-o}let r=e.st.length;if(t.sfirst<=r&&t.sn>r){for(let s=r-
t.sfirst;s<t.st.length;s++)e.st.push(t.st[s]),e.sm.push(t.sm[s]);n.samples=t.sn-r}if(t.cfirst<=e.chars&&t.cn>e.chars){let s=e.chars-t.cfirst;n.added=s?Array.from(
t.text).slice(s).join(""):t.text,e.text+=n.added,e.chars=t.cn}return n}function at(e,t){e.text=t.text,e.chars=t.cn}function it(e,t){let n=Math.min(e.length,t.length);
for(let o=0;o<n;o++)if(e.charCodeAt(o)!==t.charCodeAt(o))return o;return-1}function q(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<t?n=r+1:o=r}return n}function lt(e,t,n,o){let r=Math.max(0,n-t);if(r<=o)return Array.from({length:r},
(i,w)=>t+w);let s=2;for(;s*(o/2-2)<r;)s*=2;for(;;){let i=bn(e,t,n,s);if(i.length<=o)return i;s*=2}}function bn(e,t,n,o){let r=[t];for(let s=t-t%o;s<n;s+=o){let i=Math.
max(s,t),w=Math.min(s+o,n),k=[];for(let d of e){let a=Math.min(w,d.length);if(i>=a)continue;let l=i,f=i;for(let c=i+1;c<a;c++)d[c]<d[l]?l=c:d[c]>d[f]&&(f=c);k.push(
l,f)}k.sort((d,a)=>d-a);for(let d of k)d>r[r.length-1]&&r.push(d)}return r[r.length-1]!==n-1&&r.push(n-1),r}function Z(e,t,n){return e.at==="sample"?t==="second"?o=>n.st[o]:o=>le(n.t,n.st[o]):t==="second"?o=>n.t[o]:o=>o}function Le(e,t,n,[o,r]){if(e.at==="sample"){let[
s,i]=t==="second"?[o,r]:[ie(n.t,o),ie(n.t,r)];return[q(n.st,s),q(n.st,i)]}return t==="second"?[q(n.t,o),q(n.t,r)]:[Math.floor(o),Math.ceil(r)]}function Pe([e,t],n,o){
let r=o.filter(i=>i.t.length);if(!r.length)return null;let s=r.map(({t:i})=>n==="second"?[ie(i,e),ie(i,t)]:[le(i,e),le(i,t)]);return[Math.min(...s.map(i=>i[0])),
Math.max(...s.map(i=>i[1]))]}function ct(e,{t},n){return!t.length||n>t[t.length-1]?null:e==="second"?n:n<t[0]?null:q(t,n)}function ie(e,t){if(!e.length)return 0;
let n=e.length-1,o=Math.min(n,Math.max(0,t)),r=Math.floor(o);return r===n?e[n]:e[r]+(o-r)*(e[r+1]-e[r])}function le(e,t){let n=q(e,t);return n===0?0:n>=e.length?
e.length-1:n-1+(t-e[n-1])/(e[n]-e[n-1])}var vn=.98,Mn=2,Tn=1.5,_n=20;function Ae(e,t){let n=Float64Array.from(e.flatMap(s=>s.slice(t))).sort();if(n.length<_n)return null;
let o=n[Math.floor(vn*(n.length-1))];return n[n.length-1]>Mn*o?Tn*o:null}var ft=[{color:"#4269d0",dash:"solid"},{color:"#ff725c",dash:"5px,2.5px"},{color:"#3ca951",dash:"10px,3px"},{color:"#a463f2",dash:"9px,3px,2px,3px"},{color:"#9c\
6b4e",dash:"4px,2px,1px,2px,1px,2px"}];function ee(e,t){return ft[(e.line??t)%ft.length]}var ut="1px,3px",Ln=400;function dt(e,t){return e.flatMap((n,o)=>{let r={
xaxis:"x"+U(o),yaxis:"y"+U(o),type:"scatter",mode:"lines"};if(!t.head)return[{...r,x:[0,1],y:[0,1],line:{width:0},hoverinfo:"skip",showlegend:!1}];let s=t.part?
{...t,series:t.part}:t,i=me(n,t),w=En(n,o,r,i,s);return n.annotations&&w.push(...gt(n,r,s)),t.tops&&t.tops[o]!==null&&w.push(...On(n,o,r,s)),w.push(Nn(n,o,r,t)),
w.concat(Rn(n,o,r,i,t))})}function U(e){return e?e+1:""}function V(e){return e.replace(/[<>&]/g,"")}function W(e,t){return t.unit==="forward"?0:e.first}function J(e){
return e.lines.filter(t=>!t.curve)}function Ne(e,t,{head:n,series:o,axis:r,zoom:s}){let i=W(e[0],n),w=t.flatMap(a=>e.map(l=>o[a][l.column])),k=i,d=Math.max(0,...w.
map(a=>a.length));if(s){let[a,l]=Le(e[0],r,o[t[0]],s);k=Math.max(k,a-1),d=Math.min(d,l+2)}return lt(w,k,d,Ln)}function Re(e,t,{head:n,series:o}){return e.curve?
n.arms[t][e.curve]:o[t]}function pt(e,t){let n=0;for(let o of e.lines)t.series.forEach((r,s)=>{let i=Re(o,s,t);if(i)for(let w of i[o.column])w>n&&(n=w)});return n}
function An(e,{series:t}){let n=1/0;for(let o of J(e))for(let r of t)for(let s of r[o.column])s<n&&(n=s);return n<1/0?n:0}function mt(e,t,n){return e.unit!=="by\
tes"?{unit:e.unit,scale:1}:n||Qe(pt(e,t))}function me(e,t){let n=o=>t.series.some((r,s)=>{let i=Re(o,s,t),w=i&&i[o.column];return w&&w.length&&w[w.length-1]>0});
return[...new Set(e.lines.filter(o=>o.kind&&n(o)).map(o=>o.kind))]}function En(e,t,n,o,r){let{head:s,series:i,hidden:w,axis:k,ended:d}=r,{scale:a}=r.units[t],l=[],
f=J(e),c=i.map((x,g)=>g),h=f[0].at==="token"&&k==="token"?c.map(()=>Ne(f,c,r)):c.map(x=>Ne(f,[x],r)),m=(x,g,y,u)=>{let v=s.arms[g].name,M=ee(s.arms[g],g);l.push(
{...n,x:y,y:u,name:V([v,x.kind,x.label].filter(Boolean).join(" ")),showlegend:!1,hoverinfo:"skip",visible:![v,x.kind,x.label].some(L=>L&&w.has(L)),meta:{chart:e.
key,arm:v,kind:x.kind,curve:x.curve},line:{width:x.width,color:M.color,dash:x.curve?ut:M.dash},opacity:x.curve?.9:1})};for(let x of e.lines)for(let g of c){if(x.
kind&&!o.includes(x.kind))continue;let y=Re(x,g,r),u=x.scale*a;if(!y)continue;let v=y[x.column];if(x.curve&&x.at==="sample"){let L=k==="second"?y.x:y.x.map(C=>C===
null?null:le(i[g].t,C));m(x,g,L,v.map(C=>C===null?null:C*u));continue}if(x.curve){let L=Ie(x,s.arms[g]),{t:C}=i[g];if(k==="token"){let R=d?Math.max(...i.map(D=>D.
t.length))-1+L:1/0,X=Sn(y.x,R);m(x,g,X.map(D=>D-L),X.map(D=>pe(y.x,v,D)*u));continue}let P=Ne(Cn,[g],r).filter(R=>R+L>=y.x[0]);m(x,g,P.map(R=>C[R]),P.map(R=>pe(
y.x,v,R+L)*u));continue}let M=h[g].filter(L=>L<v.length);m(x,g,M.map(Z(x,k,y)),M.map(L=>v[L]*u))}return l}var Cn=[{at:"token",column:"lat",first:0}];function Ie(e,t){
return e.at==="length"?t.prompt_tokens:0}function Sn(e,t){let n=e.filter(o=>o<=t);return n.length&&n.length<e.length&&n[n.length-1]<t?[...n,t]:n}function pe(e,t,n){
let o=q(e,n);return o===0||o>=e.length?t[o?e.length-1:0]:t[o-1]+(t[o]-t[o-1])*(n-e[o-1])/(e[o]-e[o-1])}function On(e,t,n,o){let{head:r,series:s,hidden:i,axis:w,
tops:k}=o,{unit:d,scale:a}=o.units[t],[l]=J(e);return r.arms.map((f,c)=>{let p=s[c][l.column],h=l.scale*a,m=[];for(let x=W(l,r);x<p.length;x++)p[x]*h>k[t]&&m.push(
x);return{...n,mode:"markers",x:m.map(Z(l,w,s[c])),y:m.map(()=>.985*k[t]),showlegend:!1,visible:!i.has(f.name),cliponaxis:!1,marker:{symbol:"triangle-up"+(c%2?"\
-open":""),size:7,color:ee(r.arms[c],c).color},hoverinfo:"skip",text:m.map(x=>(p[x]*h).toPrecision(3)+" "+d),meta:{chart:e.key,outliers:f.name}}})}function ht(e,t,{
head:n,series:o,ended:r,axis:s,zoom:i,units:w},k){let d=e.lines.find(g=>g.curve==="floor"),a=d?n.arms.map((g,y)=>[g,o[y]]).filter(([{floor:g}])=>g&&g[d.column].
length):[];if(!a.length)return[];let{unit:l,scale:f}=w[t],c=a.map(([{floor:g},{t:y}])=>{let u=i?i[1]:r&&s==="token"?Math.max(...o.map(M=>M.t.length))-1:1/0,v=s===
"second"?le(y,u):u;return pe(g.x,g[d.column],v)*d.scale*f}),p=c.map(g=>Number(g.toPrecision(3))),m=Math.max(...c)<1.1*Math.min(...c)?p[0]:a.map(([g],y)=>V(g.name)+
" "+p[y]).join(", "),x=a.filter(([{floor:g}])=>g.exchanges).map(([{name:g,floor:y}])=>", exchanges of "+V(g)+" "+y.exchanges).join("");return[{text:"roofline bo\
und "+m+" "+l+x,showarrow:!1,xref:"x"+U(t)+" domain",yref:"y"+U(t),x:1,y:Math.max(...c),xanchor:"right",yanchor:"bottom",font:{size:10,color:k}}]}var Pn=.25;function Nn(e,t,n,o){
let{head:r,series:s,ended:i,axis:w}=o,{scale:k}=o.units[t],d=[0,Math.max(1,i?Math.max(...s.map(h=>h.t.length)):r.max_new_tokens)];if(w==="second"){let h=Math.max(
0,...s.flatMap(({t:x,st:g})=>[x,g].filter(y=>y.length).map(y=>y[y.length-1]))),m=10**Math.floor(Math.log10(Math.max(1,h)));d=[0,i?h:Math.ceil((h+m/10)/m)*m]}let a=e.
unit==="bytes"?pt(e,o)*k:0,l=e.min_span*a,f=e.from_zero?0:An(e,o)*k,c=i?a:a+Pn*(a-f),p=[f-l/4,Math.max(c,f+3*l/4)];return{...n,x:d,y:p,line:{width:0},hoverinfo:"\
skip",showlegend:!1,meta:{chart:e.key,extent:!0}}}function Rn(e,t,n,o,{head:r,hidden:s,neutral:i}){let w=(l,f,c)=>({...n,x:[null],y:[null],name:V(l),line:f,legend:c,
showlegend:!0,hoverinfo:"skip",visible:s.has(l)?"legendonly":!0,meta:{legend:l}}),k="legend"+U(t),d=t?[]:r.arms.map((l,f)=>w(l.name,{width:2,...ee(r.arms[f],f)},
k));for(let l of o){let{width:f}=J(e).find(c=>c.kind===l);d.push(w(l,{width:f,color:i},k))}let a=l=>l.curve&&(!l.kind||o.includes(l.kind))&&r.arms.some(f=>f[l.curve]);
for(let l of new Set(e.lines.filter(a).map(f=>f.label)))d.push(w(l,{width:1.2,color:i,dash:ut},k));return d}var wt={compile:["diamond","◆"],recompile:["diamond","◆"],graph_skip:["x","✕"],window:["triangle-down","▼"],cache:["square","■"],gc:["circle","●"],throttle:[
"star","★"],foreign:["cross","✚"]},xt=3;function gt(e,t,{head:n,series:o,hidden:r,axis:s,ink:i}){let w=J(e)[0],k=W(w,n),d=[];return n.arms.forEach((a,l)=>{let f=o[l][w.
column],c=new Map(a.marks.filter(({token:m})=>m>=k&&m<f.length).reverse().map(m=>[m.token,m.kind]));if(!c.size)return;let p=[...c.keys()].sort((m,x)=>m-x),h=p.map(
m=>wt[c.get(m)][0]);d.push({...t,mode:"markers",x:p.map(Z(w,s,o[l])),y:p.map(m=>f[m]*w.scale),marker:{symbol:h.map(m=>m+(l%2?"-open":"")),size:9,color:i,line:{width:1.2,
color:i}},hoverinfo:"skip",showlegend:!1,visible:!r.has(a.name),meta:{chart:e.key,annotations:a.name}})}),d}function Be(e,t,n){let o=JSON.stringify(t.map(s=>s.marks));
if(e.dataset.shown===o)return;e.dataset.shown=o;let r=s=>(n==="forward"?"pass ":"token ")+I(s.token)+": "+s.text;e.title=t.flatMap(s=>s.marks.map(i=>s.name+" "+
r(i))).join(`
`),e.replaceChildren(...t.filter(s=>s.marks.length).map(s=>{let i=b("span","td-annotation arm-"+s.name.toLowerCase());i.append(b("span","td-arm",s.name));let w=s.
marks.slice(0,xt).map(d=>wt[d.kind][1]+" "+r(d)),k=s.marks.length-xt;return i.append(document.createTextNode(w.join(", ")+(k>0?" and "+I(k)+" more":""))),i}))}var In=["arm","series","index","seconds","latency_s","kv_sliding_bytes","kv_full_bytes","memory_bytes"];function kt(e,t){let n=[In.join(",")],o=e.unit==="forwar\
d"?"pass":"token";return e.arms.forEach(({name:r},s)=>{let{t:i,lat:w,kvs:k,kvf:d,st:a,sm:l}=t[s];i.forEach((f,c)=>n.push([r,o,c,f,w[c],k[c],d[c],""].join(","))),
a.forEach((f,c)=>n.push([r,"sample",c,f,"","","",l[c]].join(",")))}),n.join(`
`)+`
`}function yt(e,t){let n=document.createElement("a");n.href=URL.createObjectURL(new Blob([e],{type:"text/csv"})),n.download=t,n.click(),setTimeout(()=>URL.revokeObjectURL(
n.href),1e4)}function Bn(e,t,n,o){let{t:r,st:s}=n;if(e.at==="sample"){let w=t.second??(t.token<r.length?ie(r,t.token):1/0),k=q(s,w);return!s.length||w>Math.max(s[s.length-1],
r.length?r[r.length-1]:0)?null:k>0&&(k>=s.length||w-s[k-1]<s[k]-w)?k-1:k}let i=t.token??q(r,t.second);return i>=o&&i<r.length?i:null}function te(e){return e.toLocaleString(
"en-US",{maximumSignificantDigits:4})}function Un({x:e},t,n){let o=[],r=null;return e.forEach((s,i)=>{s===null?(o.push(t[r]),r=null):(r===null||Math.abs(s-n)<Math.
abs(e[r]-n))&&(r=i)}),o}function bt(e,t,n,o){let{head:r,series:s,hidden:i}=o,{unit:w,scale:k}=o.units[t],d=me(e,o),a=p=>!p.kind||d.includes(p.kind),[l]=e.lines.
filter(p=>!p.curve),f=J(e).filter(a),c=e.lines.filter(p=>p.curve&&p.at!=="sample"&&a(p));return r.arms.flatMap((p,h)=>{let m=Bn(l,n,s[h],W(l,r));if(m===null||i.
has(p.name)||!f.length)return[];let x=f.map(u=>s[h][u.column][m]*u.scale*k),g=[x.map((u,v)=>te(u)+(f.length>1?" "+f[v].kind:"")).join(" + ")+" "+w],y=c.filter(u=>p[u.
curve]);if(y.length){let u=y.reduce((M,L)=>M+pe(p[L.curve].x,p[L.curve][L.column],m+Ie(L,p))*L.scale*k,0),v=Math.abs(u-x.reduce((M,L)=>M+L,0))<5e-4*u;g.push(y[0].
curve==="floor"?"roofline bound "+te(u):v?"as predicted":"predicted "+te(u))}for(let u of e.lines.filter(v=>v.curve&&v.at==="sample"&&p[v.curve])){let v=Un(p[u.
curve],p[u.curve][u.column],s[h].st[m]);g.push(u.label+" "+v.map(M=>te(M*u.scale*k)).join(", "))}return l.at==="token"&&n.token===void 0&&g.push(Ee(r)+" "+I(m)),
e.lines.some(u=>u.at==="length")&&g.push(I(p.prompt_tokens+m)+" tokens cached"),[{arm:p.name,text:g.join(", ")}]})}function Ee(e){return e.unit==="forward"?"pas\
s":"token"}function vt(e,t,n,o,{head:r,series:s,hidden:i,axis:w,units:k,tops:d}){let[a]=J(e),l=W(a,r),f=d[t]===null?1/0:d[t]/a.scale/k[t].scale,c=null,p=o;return e.
annotations&&r.arms.forEach((h,m)=>{if(i.has(h.name))return;let x=s[m][a.column],g=new Set(h.marks.map(M=>M.token)),y=Z(a,w,s[m]),[u,v]=Le(a,w,s[m],[n-o,n+o]);for(let M=Math.
max(l,u);M<=Math.min(v,x.length-1);M++){let L=Math.abs(y(M)-n);L<=p&&(g.has(M)||x[M]>f)&&(p=L,c=y(M))}}),w==="second"?{second:Math.max(0,c??n)}:{token:c??Math.max(
0,Math.round(n))}}function Mt(e,{head:t,series:n,hidden:o}){return t.arms.flatMap((r,s)=>{let i=e.token??q(n[s].t,e.second);return o.has(r.name)?[]:r.marks.filter(
w=>w.token===i&&i<n[s].t.length).map(w=>r.name+" "+Ee(t)+" "+I(i)+": "+w.text)})}var qn=5;function Tt(e,t,n,o){let r=null,s=null,i=null,w=h=>[e._fullLayout["xaxis"+U(h)],e._fullLayout["yaxis"+U(h)]];function k(h){let m=e.getBoundingClientRect(),
x=h.clientX-m.left,g=h.clientY-m.top;for(let y=0;y<o.length;y++){let[u,v]=w(y);if(x<u._offset||x>u._offset+u._length||g<v._offset||g>v._offset+v._length)continue;
let M=x-u._offset;return{i:y,x:u.p2l(M),reach:Math.abs(u.p2l(M+qn)-u.p2l(M))}}return null}function d(h){let m=i&&i.head&&e._fullLayout?k(h):null;r=m&&vt(o[m.i],
m.i,m.x,m.reach,i),p()}function a(){r&&(r=null,p())}function l(h,m,x){let[g,y]=w(h);if(m===null||m<g.range[0]||m>g.range[1])return[];let u=b("i","td-moment "+x);
return Object.assign(u.style,{left:g._offset+g.l2p(m)+"px",top:y._offset+"px",height:y._length+"px"}),[u]}function f(h,m,x){let[g,y]=w(h),u=b("span","td-place",
x),v=Math.min(g._length,Math.max(0,g.l2p(m)));return Object.assign(u.style,{left:g._offset+v+"px",top:y._offset+y._length+1+"px",transform:"translateX(-"+100*v/
g._length+"%)"}),u}function c(h,m){let x=bt(o[h],h,m,i),[g,y]=w(h);if(!x.length)return[];let u=b("div","td-readout");Object.assign(u.style,{left:g._offset-4+"px",
width:g._length+8+"px",bottom:"calc(100% - "+y._offset+"px)"}),i.titles[h]&&u.append(b("strong","",i.titles[h]));for(let{arm:v,text:M}of x){let L=b("span","arm-"+
v.toLowerCase());L.append(b("b","td-arm",v),document.createTextNode(M)),u.append(L)}return[u]}function p(){let h=r||(s===null?null:{second:s}),m=[],x=h&&i&&i.head&&
e._fullLayout&&e._fullLayout.xaxis;x&&o.forEach((y,u)=>{if(!i.series.some(M=>M.t.length||M.st.length))return;let v=r?r.token??r.second:i.axis==="second"?s:null;
r?m.push(...l(u,v,"")):i.series.forEach((M,L)=>m.push(...l(u,ct(i.axis,M,s),"arm-"+i.head.arms[L].name.toLowerCase()))),v!==null&&m.push(f(u,v,i.axis==="second"?
$(v):Ee(i.head)+" "+I(v))),m.push(...c(u,h))}),t.replaceChildren(...m);let g=x?Mt(h,i):[];n.hidden=!g.length,n.replaceChildren(...g.map(y=>b("span","",y)))}return e.
addEventListener("pointermove",d),e.addEventListener("pointerdown",h=>h.pointerType==="touch"?d(h):a()),e.addEventListener("pointerleave",a),{take(h){i=h,(r||s!==
null)&&p()},pointAt(h){s=h,p()},clear(){r=null,s=null,i=null,p()}}}function _t(e,t,n){let o=null,r=[];function s(){o=null,r=[],t.replaceChildren()}function i(l,f){s(),l.head&&(o=l,r=n.map((c,p)=>k(c,p,f)),d())}function w(l){return o&&
(o={...o,series:l}),d()}function k(l,f,c){let p=e._fullLayout["xaxis"+U(f)],h=e._fullLayout["yaxis"+U(f)],m=window.devicePixelRatio,x=b("canvas",""),g=x.getContext(
"2d"),y=me(l,o);x.width=Math.ceil(p._length*m),x.height=Math.ceil(h._length*m),Object.assign(x.style,{left:p._offset+"px",top:h._offset+"px",width:p._length+"px",
height:h._length+"px"}),g.scale(m,m),t.append(x);let u=J(l).filter(v=>!v.kind||y.includes(v.kind)).flatMap(v=>o.series.map((M,L)=>({line:v,a:L,next:Math.max(W(v,
o.head),c[L][v.column]-1),drawnPx:0,shown:![o.head.arms[L].name,v.kind].some(C=>C&&o.hidden.has(C))})));return{x:p,y:h,pen:g,lines:u,scale:o.units[f].scale}}function d(){
return o?r.map(a).some(Boolean):!1}function a({x:l,y:f,pen:c,lines:p,scale:h}){let m=!1;for(let x of p){let{line:g,a:y}=x,u=o.series[y][g.column],v=u.length;if(!x.
shown||v-x.next<2)continue;let M=Z(g,o.axis,o.series[y]),L=ee(o.head.arms[y],y),C=l.l2p(M(x.next)),P=f.l2p(u[x.next]*g.scale*h),R=x.drawnPx;c.beginPath(),c.moveTo(
C,P);for(let X=x.next+1;X<v;X++){let D=l.l2p(M(X)),F=f.l2p(u[X]*g.scale*h);c.lineTo(D,F),R+=Math.hypot(D-C,F-P),C=D,P=F,m=m||l.autorange&&C>l._length||f.autorange&&
(P<0||P>f._length)}c.strokeStyle=L.color,c.lineWidth=g.width,c.setLineDash(L.dash==="solid"?[]:L.dash.split(",").map(parseFloat)),c.lineDashOffset=x.drawnPx,c.stroke(),
x.next=v-1,x.drawnPx=R}return m}return{take:i,follow:w,draw:d,clear:s}}function oe(){return window.Plotly?Promise.resolve():window.tokendynoPlotly??=new Promise(e=>{let t=()=>{let n=document.createElement("script");n.src=settings.plotly,
n.addEventListener("load",()=>e()),n.addEventListener("error",()=>{n.remove(),setTimeout(t,1e3)}),document.head.append(n)};t()})}var jn=760,Fn=250,Dn=420,zn=40,Hn=()=>Math.round(Math.min(420,Math.max(200,.26*window.innerHeight))),Xn={responsive:!0,displaylogo:!1,showTips:!1,showSendToCloud:!1,
displayModeBar:!1};function Lt(e,t,n,o,r){let s="",i=null,w=[],k=null,d=[],a=[],l=[],f=new Set,c=!1,p=0,h="token",m=null,x=0,g=!1,y=!1,u=!1,v=!1,M=!0,L=!1,C=0,P=0,
R=10,X=300,D=1e3,F=[],Xe=[];function an(A){A&&gn(),s=A,i=null,w=[],k=null,d=[],f=new Set,c=!1,M=!0,m=null,g=!1,o.clear(),r.clear()}function ln(A){t.forEach((O,N)=>{
let S="xaxis"+U(N),B=A[S+".range"]||[A[S+".range[0]"],A[S+".range[1]"]];A[S+".autorange"]?m=null:i&&B[0]!==void 0&&(m=B.map(Number))}),fe()}function fe(){M=!0,se(
!0)}function cn(A){A!==h&&(h=A,m=m&&Pe(m,h,w),fe())}function fn(A,O){if(!i||g||A.unit!=="ms")return null;let[N]=J(A),S=Ae(w.map(B=>B[N.column]),W(N,i));return S===
null?null:S*N.scale*d[O].scale}function un(A,O){if(!i||!k||A.unit!=="ms")return null;let[N]=J(A),S=W(N,i),B=w.reduce((ne,we)=>we[N.column].slice(S).reduce((Y,G)=>Math.
max(Y,G),ne),0);return B?1.05*B*N.scale*d[O].scale:null}function dn(){let A={head:i,series:w,part:k,ended:c,hidden:f,axis:h,zoom:m,ink:z("--body-text-color"),neutral:z(
"--body-text-color-subdued")};d=t.map((S,B)=>i?mt(S,A,m&&d[B]):null),a=t.map(fn),n.outliers.hidden=!g&&a.every(S=>S===null),n.outliers.setAttribute("aria-presse\
d",String(g)),_(n.outliers,g?"Cut outliers off":"Show outliers in full"),n.whole.hidden=m===null;for(let S of n.axes.children)S.setAttribute("aria-pressed",String(
S.dataset.axis===h));_(n.axes.firstElementChild,i&&i.unit==="forward"?"Passes":"Tokens");let O=dt(t,{...A,units:d,tops:a}),N=O.filter(S=>!S.meta?.extent&&S.y.some(
Number.isFinite)).map(S=>S.yaxis);return l=t.map((S,B)=>!k&&!N.includes("y"+U(B))),O}function pn(){let A=element.clientWidth<jn,O=t.length,N=A?.13:.05,S=(1-N*(O-
1))/O,B=element.clientWidth*(A?1:S)<Dn,ne=z("--body-text-color"),we=z("--border-color-primary"),Y={uirevision:s+"/"+x,datarevision:++p,paper_bgcolor:"rgba(0,0,0\
,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:ne,size:11,family:z("--font")||"sans-serif"},height:A?Fn*O:Hn(),margin:{t:B?56:36,b:34,l:44,r:8,autoexpand:!1},hovermode:!1,
dragmode:"zoom",annotations:[]};return t.forEach((G,K)=>{let ke=K*(S+N),ue=A?[0,1]:[ke,ke+S],de=A?[1-ke-S,1-ke]:[0,1],Je=G.unit==="bytes"?d[K]&&d[K].unit:G.unit,
ye=i&&i.unit==="forward"&&G.encoder||G,be=V(ye.title||(i?i.memory_label:"memory")).slice(0,zn),Ke=a[K]??un(G,K);Xe[K]=B?"":be[0].toUpperCase()+be.slice(1);let Ve={
gridcolor:we,zeroline:!1,linecolor:we,ticks:"",automargin:!1,showticklabels:!!i&&!ye.note};Y["xaxis"+U(K)]={...Ve,domain:ue,anchor:"y"+U(K),uirevision:[s,x,h].join(
"/"),...m?{range:[...m],autorange:!1}:{},title:{text:h==="second"?"seconds":i&&i.unit==="forward"?"forward pass":"token",standoff:2},nticks:6},Y["yaxis"+U(K)]={
...Ve,domain:de,anchor:"x"+U(K),rangemode:G.from_zero?"tozero":"normal",nticks:6,tickformat:",~r",...Ke===null?{}:{range:[0,Ke],autorange:!1},...l[K]?{showticklabels:!1}:
{}},i&&Y.annotations.push(...ht(G,K,{head:i,series:w,ended:c,axis:h,zoom:m,units:d},ne)),Y.annotations.push({text:"<b>"+be[0].toUpperCase()+be.slice(1)+"</b>"+(Je?
", "+Je:""),showarrow:!1,xref:"paper",yref:"paper",x:ue[0],y:de[1],xanchor:"left",yanchor:"bottom",yshift:B?32:4,xshift:-4,font:{size:12}}),ye.note&&Y.annotations.
push({text:V(ye.note),showarrow:!1,xanchor:"center",xref:"paper",yref:"paper",x:(ue[0]+ue[1])/2,y:(de[0]+de[1])/2});let wn={orientation:"h",x:ue[B?0:1],y:de[1],
xanchor:B?"left":"right",yanchor:"bottom",bgcolor:"rgba(0,0,0,0)",font:{size:11},itemwidth:30};Y["legend"+U(K)]=wn}),Y}async function se(A){if(!u||!M||L||document.
hidden||!A&&performance.now()<C||!element.offsetParent)return;M=!1;let O=performance.now(),N=k||w,S=N.map(rt),B=dn(),ne={head:i,series:w,hidden:f,axis:h,units:d,
tops:a,titles:Xe};L=!0;try{await Plotly.react(e,B,pn(),Xn)}finally{L=!1}xn(),ne.series===w&&(o.take(ne),r.take({...ne,series:N},S)),requestAnimationFrame(()=>setTimeout(
()=>{F.push(performance.now()-O),F.length>5&&F.shift(),P=performance.now()+X,C=performance.now()+Math.max(X,Math.min(D,Math.min(...F)*R)),window.tokendynoProbe&&
window.tokendynoProbe.painted(F[F.length-1])},0)),We()}function mn(){M=!0,r.draw()&&(C=Math.min(C,P)),We()}function We(){if(!window.tokendynoProbe||L||!i)return;
let A=w.map(O=>O.t.length);requestAnimationFrame(()=>setTimeout(()=>window.tokendynoProbe.shows(A),0))}function hn(A){let O=A.data[A.curveNumber].meta.legend;return f.
delete(O)||f.add(O),fe(),!1}async function gn(){y||(y=!0,await oe(),u=!0,setInterval(()=>{element.isConnected&&se(!1)},33),se(!0))}function xn(){if(!v){v=!0,e.on(
"plotly_relayout",ln),e.on("plotly_legendclick",hn),e.on("plotly_legenddoubleclick",()=>!1),n.outliers.addEventListener("click",()=>{g=!g,fe()});for(let A of n.
axes.children)A.addEventListener("click",()=>cn(A.dataset.axis));n.whole.addEventListener("click",()=>{m=null,x++,fe()})}}return{reset:an,take(A,O){i=A,w=O,M=!0},
end(){c=!0,M=!0,se(!0)},async picture(A){return await oe(),Plotly.downloadImage(e,{format:"png",filename:A,scale:2,width:e.clientWidth,height:e.clientHeight})},
get zoom(){return m&&(h==="token"?m:Pe(m,"token",w))},grow:mn,only(A){if(k===A)return;let O=k&&A&&A.every((N,S)=>N.t.length>=k[S].t.length);k=A,M=!0,O&&r.follow(
A)&&(C=Math.min(C,P)),se(!O)},touch(){M=!0,se(!1)},pace(A,O,N){R=A,X=O,D=N}}}var Wn=10,Jn=60,Ue=200,At=[["Shortest",0],["10%",.1],["Median",.5],["90%",.9],["99%",.99],["Longest",1]];function he(e,t){return e[Math.max(0,Math.ceil(Number((t*
e.length).toFixed(9)))-1)]}function Kn(e,t,n){let o=W({first:1},e);return t.map(({lat:r})=>Float64Array.from(r.slice(Math.max(o,n?Math.ceil(n[0]):0),n?Math.floor(
n[1])+1:r.length)).sort())}function Vn(e){let t=e.filter(d=>d.length),n=Math.min(...t.map(d=>d[0])),o=Ae(t.map(d=>[...d]),0)??Math.max(...t.map(d=>d[d.length-1])),
r=t.map(d=>2*(he(d,.75)-he(d,.25))/Math.cbrt(d.length)).filter(d=>d>0),s=Math.round(Math.min(Jn,Math.max(Wn,r.length?(o-n)/Math.min(...r):0))),i=o>n?(o-n)/s:Math.
max(1e-9,.01*n),w=Array.from({length:s+1},(d,a)=>n+a*i),k=e.map(()=>new Array(s).fill(0));return e.forEach((d,a)=>{for(let l of d)l<=o&&k[a][Math.min(s-1,Math.floor(
(l-n)/i))]++}),{edges:w,shares:k.map((d,a)=>d.map(l=>l/Math.max(1,e[a].length))),beyond:e.map(d=>d.length-q(d,o*(1+1e-12)))}}function Qn(e,t){let n=[];for(let o=0;o<=
Ue&&e.length;o++){let r=he(e,o/Ue);r<=t*(1+1e-12)&&n.push([r,o/Ue])}return n}function Et(e,t,n){let o=a=>t.querySelector(a),r=o(".td-spread-plot");function s(a,l,f){
let c=Kn(a,l,f),p=a.unit==="forward"?"passes":"tokens",h=f?p+" "+I(Math.ceil(Math.max(0,f[0])))+" to "+I(Math.floor(f[1]))+", as zoomed":a.unit==="forward"?"all\
 passes":"all tokens after the first";if(_(o(".td-spread-what"),"The first run of each arm: "+h+"."),!c.some(g=>g.length)){i();return}let m=Vn(c),x=m.edges[m.edges.
length-1];_(o(".td-spread-said"),w(a,c,m,x,p)),o("table").replaceChildren(...k(a,c,p)),d(a,c,m,x,p)}function i(){_(o(".td-spread-said"),"There are no latencies \
here."),window.Plotly&&Plotly.purge(r),o("table").replaceChildren()}function w(a,l,{beyond:f},c,p){return a.arms.map(({name:h},m)=>{if(!l[m].length)return"Arm "+
h+" has none yet.";let[x,g]=[.25,.75].map(u=>te(1e3*he(l[m],u))),y=f[m]?", and "+I(f[m])+" longer than the "+te(1e3*c)+" ms that are drawn":"";return"Half of th\
e "+p+" of arm "+h+" took "+x+" to "+g+" ms"+y+"."}).join(" ")}function k(a,l,f){let c=(h,m,x)=>{let g=b("tr",x);return m.forEach((y,u)=>{let v=b(u?h:"th","",y);
v.tagName==="TH"&&(v.scope=u?"col":"row"),g.append(v)}),g},p=c("th",["ms",f[0].toUpperCase()+f.slice(1),"Mean",...At.map(([h])=>h)],"");return p.cells[0].scope=
"col",[p,...a.arms.map(({name:h},m)=>{let x=l[m],g=x.reduce((u,v)=>u+v,0)/x.length,y=At.map(([,u])=>x.length<(n[u]||1)?"needs "+n[u]:te(1e3*he(x,u)));return c("\
td",["Arm "+h,I(x.length),...x.length?[te(1e3*g),...y]:[]],"arm-"+h.toLowerCase())})]}function d(a,l,{edges:f,shares:c},p,h){let m=z("--body-text-color"),x=z("-\
-border-color-primary"),g=f.map(C=>1e3*C),y=a.arms.flatMap(({name:C},P)=>{let R={width:1.6,...ee(a.arms[P],P)},X=Qn(l[P],p),D={type:"scatter",mode:"lines",name:V(
C),line:R,hoverinfo:"skip"};return[{...D,x:g,y:[...c[P].map(F=>100*F),0],line:{...R,shape:"hv"},fill:"tozeroy",fillcolor:R.color+"30"},{...D,x:X.map(F=>1e3*F[0]),
y:X.map(F=>100*F[1]),line:{...R,shape:"hv"},xaxis:"x2",yaxis:"y2",showlegend:!1}]}),u=.02*(g[g.length-1]-g[0]),v=[g[0]-u,g[g.length-1]+u],M={gridcolor:x,linecolor:x,
zeroline:!1,nticks:6,fixedrange:!0},L=C=>({text:C,standoff:4});oe().then(()=>Plotly.react(r,y,{paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{
color:m,size:11,family:z("--font")||"sans-serif"},height:260,margin:{t:24,b:38,l:46,r:8},hovermode:!1,legend:{orientation:"h",x:1,xanchor:"right",y:1,yanchor:"b\
ottom"},xaxis:{...M,range:v,domain:[0,.47],title:L("latency, ms")},yaxis:{...M,title:L("% of "+h),rangemode:"tozero"},xaxis2:{...M,domain:[.55,1],anchor:"y2",matches:"\
x",title:L("latency, ms")},yaxis2:{...M,anchor:"x2",title:L("cumulative %"),range:[0,101]}},{staticPlot:!0,responsive:!0,showSendToCloud:!1}))}return{show:s,openOn(a){
e.addEventListener("click",()=>{a()&&(t.showModal(),s(...a()))}),t.querySelector(".td-close").addEventListener("click",()=>t.close()),t.addEventListener("click",
l=>{l.target===t&&t.close()})},follow(a){t.open&&a()&&s(...a())}}}var Yn=3,Gn=8e3;function Ct(e,t,n){let o=60,r=0,s=!1,i=0,w=0,k=0,d=0,a=!1,l=!1;function f(m){return new Promise((x,g)=>{let y=setTimeout(()=>g(new Error("no ans\
wer")),Gn);m.then(u=>{clearTimeout(y),x(u)},u=>{clearTimeout(y),g(u)})})}async function c(){let m=d;i++;try{let x="more";for(;x==="more";){let g=await f(e());if(m!==
d)return;l=!0,w&&(w=0,k=0,n("")),x=t(g)}x==="over"&&(a=!1)}catch{if(m!==d||!a)return;w++;let x=Math.min(1e4,250*2**w);k=performance.now()+x,n("The server does n\
ot answer. Retrying in "+$(x/1e3)+"; nothing is lost.")}finally{i--}}async function p(){if(!element.isConnected)return;let m=w||!l||s?1:Yn,x=a&&!document.hidden&&
i<m&&performance.now()>=k,g=x&&c();s&&await g,setTimeout(p,Math.max(o,r))}setTimeout(p,0),document.addEventListener("visibilitychange",()=>{!document.hidden&&element.
isConnected&&a&&i===0&&(k=0,c())});function h(){d++,w=0,k=0,l=!1,a=!0,n(""),document.hidden||c()}return{begin:h,stop(){d++,a=!1},every(m,x=!1){o=m,s=x},atLeast(m){
r=m},get running(){return a}}}var Ot=4e3;function $n(e,t,n){let o=q(e.t,n);if(o>=e.t.length)return e.n.length?e.n[e.n.length-1]:0;let r=o?[e.t[o-1],e.n[o-1]]:[t,0];return n<=r[0]?r[1]:Math.floor(
r[1]+(e.n[o]-r[1])*(n-r[0])/(e.t[o]-r[0]))}function Zn(e,t){let n=St(e.t,t),o=St(e.st,t),r={...e};for(let s of _e)r[s]=e[s].slice(0,n);for(let s of["st","sm"])r[s]=
e[s].slice(0,o);return r}function St(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<=t?n=r+1:o=r}return n}function Pt(e,t,n,o,r,s){let i=null,w=[],k=0,d=0,
a=!1,l=0;function f(g,y){i=g,w=y,k=Math.max(0,...w.map(v=>v.t.length?v.t[v.t.length-1]:0));let u=k>0&&i.unit!=="forward"&&i.arms.some(v=>v.pace.t.length);e.disabled=
t.disabled=o.disabled=!u,t.max=k,u&&(d=k,t.value=k,c())}function c(){_(e,a?"❚❚ Pause":"▶ Race");let g=i?i.arms.filter((u,v)=>w[v].t.length&&d>=w[v].t[w[v].
t.length-1]).map(u=>u.name):[],y=d<k&&g.length?", "+g.join(" and ")+" done":"";_(n,k?d.toFixed(k>=100?0:k>=10?1:2)+" of "+$(k)+y:""),t.setAttribute("aria-valuet\
ext",$(d))}function p(){d>=k?(r.whole(),s(null,null)):(i.arms.forEach((g,y)=>r.upTo(y,w[y].t.length?$n(g.pace,w[y].t[0],d):0)),s(d,w.map(g=>Zn(g,d)))),c()}function h(g){
if(!a||!element.isConnected)return;let y=Math.max(0,g-l);d=Math.min(k,d+y/1e3*Number(o.value)),l=g,d>=k&&(a=!1),t.value=d,p(),a&&requestAnimationFrame(h)}function m(){
a=!1,k=0,d=0,i=null,w=[],e.disabled=t.disabled=o.disabled=!0,t.value=0,s(null,null),c()}function x(){e.disabled||(a=!a,a&&(d>=k&&(d=0),l=performance.now(),requestAnimationFrame(
h)),p())}return e.addEventListener("click",x),t.addEventListener("input",()=>{a=!1,d=Number(t.value),p()}),{ready:f,clear:m,toggle:x}}var eo=5e3,to=3e3;function Nt(e){let t=[],n=null,o=[];function r(l,f){if(e.replaceChildren(),o=[],f==="forward"){t=[],e.append(b("p","td-empty","An encoder gene\
rates no text: its forward passes are timed."));return}t=l.map(c=>{let p=b("section","td-text arm-"+c.name.toLowerCase()),h=b("div","td-scroll");h.tabIndex=0,h.
setAttribute("role","region"),h.setAttribute("aria-label","Text of arm "+c.name);let m=b("div","td-body");return m.append(document.createTextNode("")),h.append(
m),p.append(h),e.append(p),{body:m}}),n=b("p","td-text-comparison",""),e.append(n)}function s(l,f){if(!f||!t[l])return;let c=t[l].body.firstChild;c.appendData(f),
c.length>eo&&c.deleteData(0,c.length-to)}function i(l,f,c){if(!t[l])return;o[l]={text:f,difference:c};let p=t[l].body;if(p.replaceChildren(),c<0){p.append(document.
createTextNode(f));return}let h=b("span","td-divergent"),m=b("mark","td-difference","≠");m.title="The texts differ from here on.",h.append(document.createTextNode(
f.slice(c))),p.append(document.createTextNode(f.slice(0,c)),m,h)}function w(){for(let{body:l}of t){let f=l.parentElement,c=l.querySelector(".td-difference");c&&
(f.scrollTop+=c.getBoundingClientRect().top-f.getBoundingClientRect().top-f.clientHeight/3)}}function k(l,f){if(!t.length)return;let c=l.map(y=>y.text),[p,h]=c,
m=c.length<2?-1:it(p,h);if(c.forEach((y,u)=>{i(u,y,m),t[u].body.closest(".td-text").classList.toggle("td-unwritten",!y)}),w(),c.length<2)return;let x=Math.min(p.
length,h.length),g=m<0&&p.length===h.length;x?g?_(n,"The texts are identical."):m<0?_(n,"The first "+I(x)+" characters are identical; one text is longer."):f?.startsWith(
"The texts differ")?_(n,"Marked ≠: "+f):_(n,"The texts first differ at character "+I(m+1)+", marked ≠. "+(f||"")):_(n,"")}function d(l,f){if(!t[l]||!o[l])return;
let c=o[l].text.slice(0,f),p=document.createTextNode(c.slice(-Ot));t[l].body.replaceChildren(p)}function a(){t.forEach((l,f)=>{o[f]&&i(f,o[f].text,o[f].difference)}),
w()}return{build:r,append:s,finish:k,upTo:d,whole:a}}function Rt(e){let t=[],n=null,o=0;function r(a){e.replaceChildren(),t=a.map(l=>{let f=b("div","td-phases arm-"+l.name.toLowerCase()),c=b("span","td-steps"),p=b(
"i","td-phase-bar");return f.append(b("span","td-arm",l.name),b("b","td-label",l.label),c,p),e.append(f),{steps:c,bar:p,chips:new Map}})}function s(a,l,f){let c=a.
state==="begin"||a.state==="step",p=a.title+" "+$(c?Math.max(a.seconds,l-a.begin_s):a.seconds);return a.name==="run"&&!(n.quality&&!f)?p+=", "+I(f)+" of "+I(n.max_new_tokens)+
(n.unit==="forward"?" passes":" tokens"):c&&a.fraction!==null&&(p+=", "+Math.round(100*a.fraction)+"%"),a.wait&&(p+=", "+a.wait),c&&a.note&&(p+=" ("+a.note+")"),
a.state==="broken"?"✕ "+p:p}function i(a,l){return a.expected_s?Math.min(.95,(l-a.begin_s)/a.expected_s):0}function w(a,l){if(!n)return;let f=n.now_s+(performance.
now()-o)/1e3;n.arms.forEach((c,p)=>{let h=t[p];if(!c.phases.length){_(h.steps,l?"did not run":p?"waiting for arm "+n.arms[p-1].name:"waiting");return}h.chips.size||
h.steps.replaceChildren();for(let y of c.phases){let u=h.chips.get(y.name);u||(u=b("span",""),h.chips.set(y.name,u),h.steps.append(u));let v="td-step "+y.state;
u.className!==v&&(u.className=v),_(u,s(y,f,a[p].t.length))}let m=c.phases[c.phases.length-1],x=m.name==="run"?a[p].t.length/n.max_new_tokens:m.fraction||i(m,f),
g=c.state==="working"?(100*Math.min(1,x)).toFixed(1)+"%":"0";h.bar.style.width!==g&&(h.bar.style.width=g)})}function k(a){n=a,o=performance.now()}function d(){n=
null,t=[],e.replaceChildren()}return{build:r,take:k,tick:w,clear:d}}function It(e,t,n,o,r,s){function i(a,l){_(e,k(a,l)),e.classList.toggle("td-underway",!a.verdict.sentence),_(t,a.verdict.basis),_(o,a.verdict.unasked),s&&_(s,a.
verdict.pays),w(a.verdict),n.hidden=!a.digest,a.digest&&(n.className="td-digest "+a.digest.status,_(n,a.digest.line))}function w({gate:a,gate_run:l}){!r||r.textContent===
(a||"")||(r.replaceChildren(),r.title=a||"",a&&(l?r.append(Object.assign(b("a","td-gate-line",a),{href:"?"+new URLSearchParams({run:l})})):r.append(b("span","td\
-gate-line",a))))}function k(a,l){if(a.verdict.sentence)return a.verdict.sentence;if(l==="queued")return"Waiting for the runs before this one.";if(l!=="running")
return l==="done"?"The run is complete.":l==="cancelled"?"Stopped before both arms were complete: no verdict.":"";let f=a.arms.find(h=>h.state==="working");if(!f)
return"Starting.";let c=a.arms.filter(h=>h.state==="waiting").map(h=>h.name),p=f.phases.at(-1);return"Running arm "+f.name+(p?": "+p.title:"")+(c.length?"; then\
 arm "+c.join(" and ")+".":".")}function d(){_(e,""),_(t,""),_(o,""),s&&_(s,""),w({gate:"",gate_run:""}),n.hidden=!0}return{take:i,clear:d}}var Bt=[["title","Text",""],["positions","Positions","tokens that both arms were asked to predict"],["a","Perplexity A",""],["b","Perplexity B",""],["ratio","B \
/ A","perplexity of B / perplexity of A"],["kl","KL, nats","mean divergence of B from A"],["largest","Largest KL","at a single position"],["agreement","Agreemen\
t","positions at which both find the same token most likely"],["divergence","First divergence","first position at which they do not"]];function Ut(e){let t="";function n(s){
let i=JSON.stringify(s);if(i===t||(t=i,e.hidden=!s,e.replaceChildren(),!s)||(e.append(b("h3","","Quality on given texts")),e.append(o(s.rows)),s.progress&&e.append(
b("p","td-quality-progress",s.progress)),s.note&&e.append(b("p","",s.note)),!s.compared))return;let w=b("p",""),k=b("a","td-compared","The comparison of these a\
rms");k.href="?"+new URLSearchParams({run:s.compared}),w.append(k,document.createTextNode(" names this cost beside its gain.")),e.append(w)}function o(s){let i=b(
"div","td-quality-rows"),w=b("table",""),k=b("tr",""),d=b("thead",""),a=b("tbody","");i.tabIndex=0,i.setAttribute("role","region"),i.setAttribute("aria-label","\
Quality by text");for(let[,l,f]of Bt){let c=b("th","",l);c.scope="col",c.title=f,k.append(c)}d.append(k);for(let l of s){let f=b("tr",l===s[s.length-1]?"td-all-\
texts":""),c=b("th","",l.title);c.scope="row",f.append(c,...Bt.slice(1).map(([p])=>b("td","",l[p]))),a.append(f)}return w.append(d,a),i.append(w),i}function r(){
t="",e.hidden=!0,e.replaceChildren()}return{take:n,clear:r}}function qt(e){let t=new Map,n="";function o(w,k){let d=[...new Map(w.flatMap(l=>l.tiles.map(f=>[f.key,f.label])))],a=JSON.stringify([d,w.map(l=>l.name)]);n!==a&&
s(d,w,a);for(let[l]of d){let f=w.map(u=>u.tiles.find(v=>v.key===l)),{card:c,values:p,unit:h,foot:m}=t.get(l),x=[...new Set(f.map(u=>u&&u.unit).filter(Boolean))],
g=x.length===1;p.forEach((u,v)=>{let M=f[v],L=M&&M.value!=="n/a";_(u.number,L?M.value:"–"),_(u.unit,L&&!g&&M.unit?" "+M.unit:"")}),_(h,g?x[0]:"");let y=k[l];_(
m,y?y.text:r(f.map(u=>u?u.note:""))),m.className="td-foot"+(y&&y.better?" better":""),c.title=f.map((u,v)=>u&&u.note?w[v].name+": "+u.value+" "+u.unit+", "+u.note:
"").filter(Boolean).join(`
`)}}function r(w){let[k,...d]=new Set(w.filter(Boolean)),a=w.every(Boolean);return k&&!d.length&&(a||!/\d/.test(k))?k:""}function s(w,k,d){e.replaceChildren(),t=
new Map,n=d;for(let[a,l]of w){let f=b("div","td-tile"),c=b("p","td-figure"),p=b("span","td-unit",""),h=b("small","td-foot","");f.dataset.key=a;let m=k.map(x=>{let g=b(
"b","arm-"+x.name.toLowerCase()),y=b("span","",""),u=b("small","","");return g.append(y,u),c.append(b("span","td-hidden","Arm "+x.name+": "),g),{number:y,unit:u}});
c.append(p),f.append(b("h3","",l),c,h),e.append(f),t.set(a,{card:f,values:m,unit:p,foot:h})}}function i(){for(let{card:w,values:k,unit:d,foot:a}of t.values())w.
title="",k.forEach(l=>{_(l.number,"–"),_(l.unit,"")}),_(d,""),_(a,"")}return{take:o,clear:i}}function jt(e){let t="";function n(s){let i=s.filter(f=>f.details.length),w=JSON.stringify(i.map(f=>[f.name,f.details]));if(w===t)return;if(t=w,e.replaceChildren(),
!i.length){e.append(b("p","td-empty","Percentiles, intervals and readings of the machine appear here once an arm has finished."));return}let k=b("table",""),d=b(
"thead",""),a=b("tbody","");d.append(Me("Figure",i));let l=new Map(i.flatMap(f=>f.details.map(c=>[c.key,c.label])));for(let[f,c]of l){let p=b("tr",""),h=b("th",
"",c);h.scope="row",p.dataset.key=f,p.append(h,...i.map(m=>o(m.details.find(x=>x.key===f)))),a.append(p)}k.append(d,a),e.append(k)}function o(s){let i=b("td","");
return s&&(i.append(b("b","",s.value),document.createTextNode(s.unit?" "+s.unit:"")),s.note&&i.append(b("small","",s.note))),i}function r(){t="",e.replaceChildren()}
return{take:n,clear:r}}var no={verified:"✓ verified",partial:"◐ partial",no_effect:"○ no effect",fallback:"▲ fallback",failed:"✕ failed",unchecked:"◌ unchecked",off:"off",
not_applicable:"not applicable"};function Ft(e){let t="",n=!1;function o(k,d){let a=JSON.stringify([k.map(g=>g.ledger),d]);if(a===t)return;if(t=a,e.replaceChildren(),
!d){e.append(b("p","td-empty","Proof that each choice took effect appears here once an arm has finished."));return}let l=b("table",""),f=b("tr",""),c=b("thead",
""),p=b("tbody",""),h=b("caption","","Ledger");h.append(b("small","",d.line)),l.append(h);for(let g of["Axis","Arm","Requested","Planned","Effective","Status","\
Proof"]){let y=b("th","",g);y.scope="col",y.role="columnheader",f.append(y)}c.append(f);for(let[g,y]of[[c,"rowgroup"],[p,"rowgroup"],[f,"row"]])g.role=y;let m=[
...new Set(k.flatMap(g=>g.ledger.map(y=>y.axis)))];for(let g of m){let y=s(k,g);y.forEach((u,v)=>{let M=i(u,d.titles[g]||g,v?0:y.length);M.classList.toggle("td-\
quiet",!d.shown.includes(g)),p.append(M)})}let x=b("button","td-all","");x.type="button",x.addEventListener("click",()=>{n=!n,r(l,x,m.length,d)}),l.append(c,p),
e.append(l,x),r(l,x,m.length,d)}function r(k,d,a,l){let f=!n&&!l.shown.length;k.classList.toggle("td-folded",!n),k.classList.toggle("td-none",f),k.role=f?"prese\
ntation":"table",d.hidden=l.shown.length===a,_(d,n?"Only what differs or is not verified":"All "+a+" axes with their proof"),d.setAttribute("aria-expanded",String(
n))}function s(k,d){let a=new Map;for(let l of k)for(let f of l.ledger.filter(c=>c.axis===d)){let c=JSON.stringify(f);a.has(c)?a.get(c).arms.push(l.name):a.set(
c,{...f,arms:[l.name]})}return[...a.values()]}function i(k,d,a){let l=b("tr",k.status);if(l.role="row",a){let p=b("th","",d);p.scope="rowgroup",p.rowSpan=a,p.role=
"rowheader",l.append(p)}let f=b("td","td-who");for(let p of k.arms){let h=b("span","arm-"+p.toLowerCase());h.append(b("span","td-arm",p)),f.append(h)}l.append(f);
for(let p of["requested","planned","effective"]){let h=b("td","td-choice",k[p]);h.dataset.title=p,l.append(h)}l.append(b("td","td-status",no[k.status]||k.status));
let c=b("td","td-proof",k.proof);k.reason&&c.append(b("small","",k.reason)),l.append(c);for(let p of l.querySelectorAll("td"))p.role="cell";return l}function w(){
t="",n=!1,e.replaceChildren()}return{take:o,clear:w}}var Dt={ok:"",note:"Note: ",fallback:"▲ Fallback: ",blocked:"✕ Blocked: "};function zt(e,t){let n=t.flatMap(r=>[...r.verdicts.filter(s=>s.level!=="ok").map(
s=>({arm:r.name,level:s.level,text:Dt[s.level]+s.reason})),...r.spoilers.map(s=>({arm:r.name,level:"fallback",text:"▲ "+s})),...r.notes.map(s=>({arm:r.name,level:"\
note",text:Dt.note+s}))]),o=JSON.stringify(n);e.dataset.shown!==o&&(e.dataset.shown=o,e.replaceChildren(...n.map(r=>{let s=b("li",r.level+" arm-"+r.arm.toLowerCase());
return s.append(b("span","td-arm",r.arm),document.createTextNode(r.text)),s})))}function qe(e,{of:t,title:n,hint:o,whole:r,numbers:s,lacking:i}){let w="";function k(p){let h=p.map(u=>({name:u.name,step:t(u)})).filter(u=>u.step),m=JSON.stringify(
h);if(m===w)return;w=m,e.hidden=!h.length;let x=h.filter(u=>!u.step.missing),g=Math.max(...x.map(u=>u.step.seconds)),y=b("h3","",n);if(x.some(u=>u.step.parts.some(
v=>v.reads_s!==null))&&y.append(b("span","td-part-hint",o)),e.replaceChildren(y,...x.map(u=>a(u,g))),x.length){let u=b("div","td-part-scroll");u.tabIndex=0,u.setAttribute(
"role","region"),u.setAttribute("aria-label",s),u.append(l(x)),e.append(u)}for(let u of h){let v=b("p","arm-"+u.name.toLowerCase());v.append(b("span","td-arm",u.
name),document.createTextNode(u.step.missing?i+u.step.missing+".":d(u.step.said))),e.append(v)}}function d(p){return p[0].toUpperCase()+p.slice(1)+"."}function a({
name:p,step:h},m){let x=b("div","td-part-bar arm-"+p.toLowerCase()),g=b("div","td-part-track");x.setAttribute("aria-hidden","true");for(let y of h.parts){if(!y.
seconds)continue;let u=b("span","td-part-piece td-part "+y.key);if(u.style.width=100*y.seconds/m+"%",u.title=[y.label+" "+y.text,y.reads].filter(Boolean).join("\
, "),y.reads_s!==null){let v=b("i","td-part-need");v.style.width=Math.min(100,100*y.reads_s/y.seconds)+"%",u.append(v)}g.append(u)}return x.append(b("span","td-\
arm",p),g),x}function l(p){let h=b("table",""),m=b("thead",""),x=b("tbody","");m.append(Me("Part",p));let g=[];for(let v of p){let M=0;for(let L of v.step.parts){
let C=g.findIndex(P=>P.key===L.key);C<0?g.splice(M++,0,L):M=C+1}}for(let{key:v,label:M}of g){let L=b("tr",""),C=b("th","");L.dataset.key=v,C.scope="row",C.append(
b("i","td-part-key td-part "+v),document.createTextNode(M)),L.append(C,...p.map(P=>f(P.step.parts.find(R=>R.key===v)))),x.append(L)}let y=b("tr",""),u=b("th","",
r);return u.scope="row",y.append(u,...p.map(v=>b("td","",v.step.text))),x.append(y),h.append(m,x),h}function f(p){let h=b("td","");return p&&(h.append(b("b","",
p.text),document.createTextNode(p.seconds===null?"":" "+Math.round(100*p.share)+"%")),p.reads&&h.append(b("small","",p.reads))),h}function c(){w="",e.hidden=!0,
e.replaceChildren()}return{take:k,clear:c}}function Ht(e){let t="",n=null;function o(i){let w=JSON.stringify(i.crossing??null);if(w===t)return;if(t=w,n=i.crossing?i:null,e.hidden=!n,!n){e.replaceChildren();
return}let k=b("h3","","When does waiting pay?");k.append(b("span","td-part-hint","seconds since the imports were done, over "+(i.unit==="forward"?"forward pass\
es":"tokens written")));let d=b("div","td-crossing-plot");d.setAttribute("aria-hidden","true"),e.replaceChildren(k,d),r()}function r(){if(!n)return;let{arms:i,crossing:{
starts_s:w,steps_s:k,tokens:d,label:a}}=n,l=e.querySelector(".td-crossing-plot"),f=z("--body-text-color"),c=z("--border-color-primary"),p=2*d,h=(u,v)=>w[u]+v*k[u],
m=Math.max(...i.map((u,v)=>h(v,p))),x=i.map((u,v)=>({type:"scatter",mode:"lines",name:"Arm "+V(u.name),line:{width:2,...ee(u,v)},x:[0,p],y:[h(v,0),h(v,p)]})),g=h(
0,d),y={gridcolor:c,linecolor:c,zeroline:!1,nticks:6,fixedrange:!0};x.push({type:"scatter",mode:"markers",x:[d],y:[g],marker:{size:9,color:z("--body-background-\
fill"),line:{width:2,color:f}},showlegend:!1}),oe().then(()=>Plotly.react(l,x,{paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:f,size:11,
family:z("--font")||"sans-serif"},height:220,margin:{t:24,b:38,l:46,r:8},hovermode:!1,legend:{orientation:"h",x:1,xanchor:"right",y:1,yanchor:"bottom"},xaxis:{...y,
range:[0,p],tickformat:",",title:{text:n.unit==="forward"?"forward passes":"tokens",standoff:4}},yaxis:{...y,range:[0,1.05*m],ticksuffix:" s"},annotations:[{x:d,
y:g,text:"<b>"+V(a)+"</b>",showarrow:!1,yanchor:"top",xanchor:"left",xshift:8,yshift:-6}]},{staticPlot:!0,responsive:!0,showSendToCloud:!1}))}function s(){o({})}
return ve(r),{take:o,clear:s}}var oo="Press Run: arm A answers the prompt first, then arm B. Their texts, speed, memory and KV cache appear here, with proof that each choice took effect.",Xt=new URLSearchParams(
location.search).get("pace"),ro=75,so=60,Jt=Tt(T(".td-plot"),T(".td-moments"),T(".td-noted"),settings.charts),ao={outliers:T(".td-outliers"),axes:T(".td-axis"),
whole:T(".td-whole")},io=_t(T(".td-plot"),T(".td-fresh"),settings.charts),Q=Lt(T(".td-plot"),settings.charts,ao,Jt,io),Se=Nt(T(".td-texts")),je=Pt(T(".td-race"),
T(".td-scrub"),T(".td-clock"),T(".td-speed"),Se,(e,t)=>{Q.only(t),Jt.pointAt(e)}),Kt=Et(T(".td-distribution"),T(".td-spread"),settings.fewest),Vt=()=>E&&[E,j,Q.
zoom],xe=Rt(T(".td-progress")),De=It(T(".td-sentence"),T(".td-basis"),T(".td-digest"),T(".td-unasked"),T(".td-gate"),T(".td-pays")),Qt=Ut(T(".td-quality")),Yt=qt(
T(".td-tiles")),Gt=jt(T(".td-rows")),$t=Ft(T(".td-ledger")),Zt=qe(T(".td-parts"),{of:e=>e.step,title:"Where the time of a step goes",hint:"the line under a part\
 is the time that its bytes need",whole:"Measured",numbers:"Parts of a step as numbers",lacking:"Not traced: "}),en=qe(T(".td-start"),{of:e=>e.start,title:"From\
 process to first token",whole:"Together",numbers:"Parts of a start as numbers"}),tn=Ht(T(".td-crossing")),H="",j=[],E=null,ze=-1,nn=0,Fe=0,ce=!1,He=!1,re=!1,ge=!1,
Ce=Ct(lo,co,e=>_(T(".td-connection"),e));async function lo(){let e=++nn,t=H,n=j.length?j.map(Oe):[[0,0,0],[0,0,0]];ce&&n.forEach(s=>{s[2]=0});let o=ge&&!ce&&!He?
so:0,r=JSON.parse(await server.pull({run:t,version:ze,cur:n,wait_ms:o}));return r.seq=e,r}function co(e){if(e.error)return $e(H,e.error),"over";if(e.run!==H||re)
return re?"over":"wait";if(e.head&&e.seq>Fe&&(Fe=e.seq,fo(e)),!E)return"wait";Ge(e.status,e.queue),et(e.trouble),Ce.atLeast(e.every_ms);let t=!1,n=!1;return e.lanes.
forEach((o,r)=>{if(!j[r])return;ce&&o.cfirst===0&&at(j[r],o);let s=st(j[r],o);Se.append(r,s.added),n=n||s.tokens>0||s.samples>0,t=t||o.n-o.first>=settings.most}),
He=t,n&&(Q.grow(),Kt.follow(Vt)),window.tokendynoProbe&&window.tokendynoProbe.arrived(j.map(o=>o.t.length)),e.ended?ce?e.lanes.every(o=>o.cfirst===0)?(uo(e),"ov\
er"):"more":(ce=!0,"more"):t?"more":"wait"}function fo(e){let t=!E;E=e.head,ze=e.version,t&&(j=E.arms.map(ot),Se.build(E.arms,E.unit),xe.build(E.arms),element.classList.
toggle("single",E.arms.length===1),_(T(".td-empty-run"),""),ae(!1)),_(T(".td-title"),E.title),_(T(".td-note"),E.note),xe.take(E),De.take(E,e.status),Qt.take(E.quality),
element.classList.toggle("td-reads",!!E.quality),Yt.take(E.arms,E.differences),Gt.take(E.arms);let n=E.arms.filter(r=>r.spoilers.length).map(r=>r.name);_(T(".td\
-interference"),n.length?"▲ Possible interference ("+n.join(" and ")+")":""),Be(T(".td-annotations"),E.arms,E.unit),$t.take(E.arms,E.digest),Zt.take(E.arms),en.
take(E.arms),tn.take(E),zt(T(".td-remarks"),E.arms),tt(e.status,E.message)&&ae(!E.arms.some(r=>r.prompt_tokens)),Q.take(E,j),on(e.ended)}function on(e){ge=!e&&(Xt?
Xt==="quiet":E.quiet&&Ye),Q.pace(...ge?[60,1e3,6e3]:[10,300,1e3]),Ce.every(...ge?[ro,!0]:[60,!1])}async function Wt(){let e=H;if(!(re&&!document.hidden&&E.verdict.
gate&&!E.verdict.gate_run))return;let n=JSON.parse(await server.pull({run:e,version:-1,cur:j.map(Oe),anew:!0}).catch(()=>"{}"));!n.head||e!==H||!re||(E.verdict=
n.head.verdict,De.take(E,n.status))}function uo(e){re=!0,on(!0),xe.tick(j,!0),Se.finish(j,E.texts),Q.end(),je.ready(E,j),element.dataset.status=e.status,element.
dataset.over=e.run,trigger("finished",{run:e.run,status:e.status}),settings.replays&&!matchMedia("(prefers-reduced-motion: reduce)").matches&&je.toggle()}function rn(e){
if(H=e||"",j=[],E=null,ze=-1,Fe=nn,ce=!1,He=!1,re=!1,Ze(H,["interference"]),element.classList.remove("td-reads"),settings.links&&window.dispatchEvent(new Event(
"tokendyno-run")),T(".td-texts").replaceChildren(),Be(T(".td-annotations"),[]),je.clear(),xe.clear(),De.clear(),Qt.clear(),Yt.clear(),Gt.clear(),$t.clear(),Zt.clear(),
en.clear(),tn.clear(),Q.reset(H),_(T(".td-empty-run"),H||!settings.links?"":[oo,settings.first].filter(Boolean).join(" ")),H||ae(!0),settings.links&&nt(H),!H){Ce.
stop();return}Ce.begin()}function sn(){element.isConnected&&(E&&!re&&!document.hidden&&xe.tick(j),setTimeout(sn,ge?1e3:100))}Kt.openOn(Vt);T(".td-csv").addEventListener(
"click",()=>{E&&yt(kt(E,j),"tokendyno-"+H+".csv")});T(".td-png").addEventListener("click",()=>{E&&Q.picture("tokendyno-"+H)});ve(()=>Q.touch());settings.links&&
(window.addEventListener("tokendyno-measured",Wt),document.addEventListener("visibilitychange",Wt));new ResizeObserver(()=>Q.touch()).observe(element);element.classList.
add("td-live");element.live={get series(){return j},get head(){return E}};watch("value",()=>{(props.value||"")!==H&&rn(props.value)});ae(!0);rn(props.value);sn();})();
