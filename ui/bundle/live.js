"use strict";(()=>{var ve=e=>{new MutationObserver(()=>e()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};function x(e,t,n){let o=document.createElement(e);return t&&(o.className=t),n!==void 0&&(o.textContent=n),o}function Me(e,t){let n=x("tr","");n.append(x("th","",
e),...t.map(o=>{let r=x("th","arm-"+o.name.toLowerCase());return r.append(x("span","td-arm",o.name)),r}));for(let o of n.querySelectorAll("th"))o.scope="col";return n}
function _(e,t){e.textContent!==t&&(e.textContent=t)}function T(e){return element.querySelector(e)}function H(e){return getComputedStyle(element).getPropertyValue(
e).trim()}function B(e){return e.toLocaleString("en-US")}function $(e){return e>=100?Math.round(e)+" s":e.toFixed(e>=10?1:2)+" s"}function Ye(e){return e>=4*2**
30?{unit:"GiB",scale:1/2**30}:e>=2*2**20?{unit:"MiB",scale:1/2**20}:{unit:"KiB",scale:1/1024}}var bn={queued:"Queued",running:"Running",done:"Done",failed:"Failed",cancelled:"Stopped",interrupted:"Interrupted"},Ge=/^(localhost|127(\.\d+){3}|\[::1\])$/.test(
location.hostname);function $e(e,t){_(T(".td-status"),bn[e]||e),e==="queued"&&t&&_(T(".td-message"),t),element.dataset.status=e}function ae(e){element.classList.
toggle("td-bare",e)}function Ze(e,t){for(let n of["status","empty-run"])_(T(".td-"+n),"");_(T(".td-failure"),t),ae(!0),trigger("finished",{run:e,status:"unknown"})}
function et(e,t){for(let n of["status","over"])delete element.dataset[n];element.dataset.run=e;for(let n of["status","title","note","failure","message","connect\
ion","unkept",...t])_(T(".td-"+n),"");T(".td-remarks").replaceChildren(),delete T(".td-remarks").dataset.shown}function tt(e){_(T(".td-unkept"),e?"▲ "+e:"")}function nt(e,t){
let n=e==="failed"||e==="interrupted";return _(T(".td-failure"),n?t||"The run ended unexpectedly.":""),_(T(".td-message"),n?"":t),n}function Te(e){return T(e)}function ot(e){
if(T(".td-link").hidden=T(".td-files").hidden=!e,!e)return;let t=new URL(location.href);t.search="?"+new URLSearchParams({run:e}),t.hash="",Te(".td-permalink").
href=t.href,_(T(".td-permalink"),t.search),Te(".td-kept").href="?"+new URLSearchParams({view:"history",q:e}),T(".td-kept").hidden=e.startsWith("recorded-");for(let r of[
"dyno","html","json"])Te(".td-file-"+r).href="files/"+encodeURIComponent(e)+"."+r;T(".td-file-html").hidden=!T(".td-plot");let n=new URL(location.href),o=n.searchParams.
get("view")||window.tokendynoAddress?.page;if(o&&o!=="compare"&&o!=="batching"){window.tokendynoAddress?.note(element.closest("#batch-live")?"batching":"compare",
e);return}n.searchParams.set("run",e);for(let r of["worth","sweep"])n.searchParams.delete(r);n.href!==location.href&&history.replaceState(history.state,"",n.href)}
async function vn(){let{href:e}=Te(".td-permalink");try{await navigator.clipboard.writeText(e),_(T(".td-copied"),"Copied")}catch{window.prompt("Copy this link:",
e)}setTimeout(()=>_(T(".td-copied"),""),2e3)}T(".td-copy").addEventListener("click",vn);var _e=["t","lat","kvs","kvf"];function rt(){return{t:[],lat:[],kvs:[],kvf:[],st:[],sm:[],text:"",chars:0}}function Oe(e){return[e.t.length,e.st.length,e.chars]}
function st(e){return Object.fromEntries([..._e,"st","sm"].map(t=>[t,e[t].length]))}function at(e,t){let n={tokens:0,samples:0,added:""},o=e.t.length;if(t.first<=
o&&t.n>o){for(let s of _e){let i=e[s],y=t[s];for(let k=o-t.first;k<y.length;k++)i.push(y[k])}n.tokens=t.n-o}let r=e.st.length;if(t.sfirst<=r&&t.sn>r){for(let s=r-
t.sfirst;s<t.st.length;s++)e.st.push(t.st[s]),e.sm.push(t.sm[s]);n.samples=t.sn-r}if(t.cfirst<=e.chars&&t.cn>e.chars){let s=e.chars-t.cfirst;n.added=s?Array.from(
t.text).slice(s).join(""):t.text,e.text+=n.added,e.chars=t.cn}return n}function it(e,t){e.text=t.text,e.chars=t.cn}function lt(e,t){let n=Math.min(e.length,t.length);
for(let o=0;o<n;o++)if(e.charCodeAt(o)!==t.charCodeAt(o))return o;return-1}function j(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<t?n=r+1:o=r}return n}function ct(e,t,n,o){let r=Math.max(0,n-t);if(r<=o)return Array.from({length:r},
(i,y)=>t+y);let s=2;for(;s*(o/2-2)<r;)s*=2;for(;;){let i=Mn(e,t,n,s);if(i.length<=o)return i;s*=2}}function Mn(e,t,n,o){let r=[t];for(let s=t-t%o;s<n;s+=o){let i=Math.
max(s,t),y=Math.min(s+o,n),k=[];for(let p of e){let l=Math.min(y,p.length);if(i>=l)continue;let a=i,f=i;for(let u=i+1;u<l;u++)p[u]<p[a]?a=u:p[u]>p[f]&&(f=u);k.push(
a,f)}k.sort((p,l)=>p-l);for(let p of k)p>r[r.length-1]&&r.push(p)}return r[r.length-1]!==n-1&&r.push(n-1),r}function Z(e,t,n){return e.at==="sample"?t==="second"?o=>n.st[o]:o=>le(n.t,n.st[o]):t==="second"?o=>n.t[o]:o=>o}function Le(e,t,n,[o,r]){if(e.at==="sample"){let[
s,i]=t==="second"?[o,r]:[ie(n.t,o),ie(n.t,r)];return[j(n.st,s),j(n.st,i)]}return t==="second"?[j(n.t,o),j(n.t,r)]:[Math.floor(o),Math.ceil(r)]}function Pe([e,t],n,o){
let r=o.filter(i=>i.t.length);if(!r.length)return null;let s=r.map(({t:i})=>n==="second"?[ie(i,e),ie(i,t)]:[le(i,e),le(i,t)]);return[Math.min(...s.map(i=>i[0])),
Math.max(...s.map(i=>i[1]))]}function dt(e,{t},n){return!t.length||n>t[t.length-1]?null:e==="second"?n:n<t[0]?null:j(t,n)}function ie(e,t){if(!e.length)return 0;
let n=e.length-1,o=Math.min(n,Math.max(0,t)),r=Math.floor(o);return r===n?e[n]:e[r]+(o-r)*(e[r+1]-e[r])}function le(e,t){let n=j(e,t);return n===0?0:n>=e.length?
e.length-1:n-1+(t-e[n-1])/(e[n]-e[n-1])}var Tn=.98,_n=2,Ln=1.5,Sn=20;function Se(e,t){let n=Float64Array.from(e.flatMap(s=>s.slice(t))).sort();if(n.length<Sn)return null;
let o=n[Math.floor(Tn*(n.length-1))];return n[n.length-1]>_n*o?Ln*o:null}var ft=[{color:"#4269d0",dash:"solid"},{color:"#ff725c",dash:"5px,2.5px"},{color:"#3ca951",dash:"10px,3px"},{color:"#a463f2",dash:"9px,3px,2px,3px"},{color:"#9c\
6b4e",dash:"4px,2px,1px,2px,1px,2px"}];function ee(e,t){return ft[(e.line??t)%ft.length]}var ut="1px,3px",An=400;function pt(e,t){return e.flatMap((n,o)=>{let r={
xaxis:"x"+q(o),yaxis:"y"+q(o),type:"scatter",mode:"lines"};if(!t.head)return[{...r,x:[0,1],y:[0,1],line:{width:0},hoverinfo:"skip",showlegend:!1}];let s=t.part?
{...t,series:t.part}:t,i=me(n,t),y=En(n,o,r,i,s);return n.annotations&&y.push(...xt(n,r,s)),t.tops&&t.tops[o]!==null&&y.push(...Nn(n,o,r,s)),y.push(In(n,o,r,t)),
y.concat(Bn(n,o,r,i,t))})}function q(e){return e?e+1:""}function V(e){return e.replace(/[<>&]/g,"")}function W(e,t){return t.unit==="forward"?0:e.first}function J(e){
return e.lines.filter(t=>!t.curve)}function Ne(e,t,{head:n,series:o,axis:r,zoom:s}){let i=W(e[0],n),y=t.flatMap(l=>e.map(a=>o[l][a.column])),k=i,p=Math.max(0,...y.
map(l=>l.length));if(s){let[l,a]=Le(e[0],r,o[t[0]],s);k=Math.max(k,l-1),p=Math.min(p,a+2)}return ct(y,k,p,An)}function Re(e,t,{head:n,series:o}){return e.curve?
n.arms[t][e.curve]:o[t]}function mt(e,t){let n=0;for(let o of e.lines)t.series.forEach((r,s)=>{let i=Re(o,s,t);if(i)for(let y of i[o.column])y>n&&(n=y)});return n}
function Cn(e,{series:t}){let n=1/0;for(let o of J(e))for(let r of t)for(let s of r[o.column])s<n&&(n=s);return n<1/0?n:0}function ht(e,t,n){return e.unit!=="by\
tes"?{unit:e.unit,scale:1}:n||Ye(mt(e,t))}function me(e,t){let n=o=>t.series.some((r,s)=>{let i=Re(o,s,t),y=i&&i[o.column];return y&&y.length&&y[y.length-1]>0});
return[...new Set(e.lines.filter(o=>o.kind&&n(o)).map(o=>o.kind))]}function En(e,t,n,o,r){let{head:s,series:i,hidden:y,axis:k,ended:p}=r,{scale:l}=r.units[t],a=[],
f=J(e),u=i.map((c,w)=>w),g=f[0].at==="token"&&k==="token"?u.map(()=>Ne(f,u,r)):u.map(c=>Ne(f,[c],r)),h=(c,w,b,d)=>{let v=s.arms[w].name,M=ee(s.arms[w],w);a.push(
{...n,x:b,y:d,name:V([v,c.kind,c.label].filter(Boolean).join(" ")),showlegend:!1,hoverinfo:"skip",visible:![v,c.kind,c.label].some(L=>L&&y.has(L)),meta:{chart:e.
key,arm:v,kind:c.kind,curve:c.curve},line:{width:c.width,color:M.color,dash:c.curve?ut:M.dash},opacity:c.curve?.9:1})};for(let c of e.lines)for(let w of u){if(c.
kind&&!o.includes(c.kind))continue;let b=Re(c,w,r),d=c.scale*l;if(!b)continue;let v=b[c.column];if(c.curve&&c.at==="sample"){let L=k==="second"?b.x:b.x.map(C=>C===
null?null:le(i[w].t,C));h(c,w,L,v.map(C=>C===null?null:C*d));continue}if(c.curve){let L=Ie(c,s.arms[w]),{t:C}=i[w];if(k==="token"){let N=p?Math.max(...i.map(z=>z.
t.length))-1+L:1/0,I=Pn(b.x,N);h(c,w,I.map(z=>z-L),I.map(z=>pe(b.x,v,z)*d));continue}let O=Ne(On,[w],r).filter(N=>N+L>=b.x[0]);h(c,w,O.map(N=>C[N]),O.map(N=>pe(
b.x,v,N+L)*d));continue}let M=g[w].filter(L=>L<v.length);h(c,w,M.map(Z(c,k,b)),M.map(L=>v[L]*d))}return a}var On=[{at:"token",column:"lat",first:0,scale:1,kind:"",
width:1,curve:"",label:""}];function Ie(e,t){return e.at==="length"?t.prompt_tokens:0}function Pn(e,t){let n=e.filter(o=>o<=t);return n.length&&n.length<e.length&&
n[n.length-1]<t?[...n,t]:n}function pe(e,t,n){let o=j(e,n);return o===0||o>=e.length?t[o?e.length-1:0]:t[o-1]+(t[o]-t[o-1])*(n-e[o-1])/(e[o]-e[o-1])}function Nn(e,t,n,o){
let{head:r,series:s,hidden:i,axis:y,tops:k}=o,{unit:p,scale:l}=o.units[t],[a]=J(e);return r.arms.map((f,u)=>{let m=s[u][a.column],g=a.scale*l,h=[];for(let c=W(a,
r);c<m.length;c++)m[c]*g>k[t]&&h.push(c);return{...n,mode:"markers",x:h.map(Z(a,y,s[u])),y:h.map(()=>.985*k[t]),showlegend:!1,visible:!i.has(f.name),cliponaxis:!1,
marker:{symbol:"triangle-up"+(u%2?"-open":""),size:7,color:ee(r.arms[u],u).color},hoverinfo:"skip",text:h.map(c=>(m[c]*g).toPrecision(3)+" "+p),meta:{chart:e.key,
outliers:f.name}}})}function gt(e,t,{head:n,series:o,ended:r,axis:s,zoom:i,units:y},k){let p=e.lines.find(b=>b.curve==="floor"),l=n.arms.map((b,d)=>[b,o[d]]),a=p?
l.filter(([{floor:b}])=>b&&b[p.column].length):[];if(!a.length)return[];let{unit:f,scale:u}=y[t],m=a.map(([{floor:b},{t:d}])=>{let v=i?i[1]:r&&s==="token"?Math.
max(...o.map(L=>L.t.length))-1:1/0,M=s==="second"?le(d,v):v;return pe(b.x,b[p.column],M)*p.scale*u}),g=m.map(b=>Number(b.toPrecision(3))),c=Math.max(...m)<1.1*Math.
min(...m)?g[0]:a.map(([b],d)=>V(b.name)+" "+g[d]).join(", "),w=a.filter(([{floor:b}])=>b.exchanges).map(([{name:b,floor:d}])=>", exchanges of "+V(b)+" "+d.exchanges).
join("");return[{text:"roofline bound "+c+" "+f+w,showarrow:!1,xref:"x"+q(t)+" domain",yref:"y"+q(t),x:1,y:Math.max(...m),xanchor:"right",yanchor:"bottom",font:{
size:10,color:k}}]}var Rn=.25;function In(e,t,n,o){let{head:r,series:s,ended:i,axis:y}=o,{scale:k}=o.units[t],p=[0,Math.max(1,i?Math.max(...s.map(g=>g.t.length)):
r.max_new_tokens)];if(y==="second"){let g=Math.max(0,...s.flatMap(({t:c,st:w})=>[c,w].filter(b=>b.length).map(b=>b[b.length-1]))),h=10**Math.floor(Math.log10(Math.
max(1,g)));p=[0,i?g:Math.ceil((g+h/10)/h)*h]}let l=e.unit==="bytes"?mt(e,o)*k:0,a=e.min_span*l,f=e.from_zero?0:Cn(e,o)*k,u=i?l:l+Rn*(l-f),m=[f-a/4,Math.max(u,f+
3*a/4)];return{...n,x:p,y:m,line:{width:0},hoverinfo:"skip",showlegend:!1,meta:{chart:e.key,extent:!0}}}function Bn(e,t,n,o,{head:r,hidden:s,neutral:i}){let y=(a,f,u)=>({
...n,x:[null],y:[null],name:V(a),line:f,legend:u,showlegend:!0,hoverinfo:"skip",visible:s.has(a)?"legendonly":!0,meta:{legend:a}}),k="legend"+q(t),p=t?[]:r.arms.
map((a,f)=>y(a.name,{width:2,...ee(r.arms[f],f)},k));for(let a of o){let{width:f}=J(e).find(u=>u.kind===a);p.push(y(a,{width:f,color:i},k))}let l=a=>a.curve&&(!a.
kind||o.includes(a.kind))&&r.arms.some(f=>f[a.curve]);for(let a of new Set(e.lines.filter(l).map(f=>f.label)))p.push(y(a,{width:1.2,color:i,dash:ut},k));return p}var kt={compile:["diamond","◆"],recompile:["diamond","◆"],graph_skip:["x","✕"],window:["triangle-down","▼"],cache:["square","■"],gc:["circle","●"],throttle:[
"star","★"],foreign:["cross","✚"]},wt=3;function xt(e,t,{head:n,series:o,hidden:r,axis:s,ink:i}){let y=J(e)[0],k=W(y,n),p=[];return n.arms.forEach((l,a)=>{let f=o[a][y.
column],u=new Map(l.marks.filter(({token:h})=>h>=k&&h<f.length).reverse().map(h=>[h.token,h.kind]));if(!u.size)return;let m=[...u.keys()].sort((h,c)=>h-c),g=m.map(
h=>kt[u.get(h)][0]);p.push({...t,mode:"markers",x:m.map(Z(y,s,o[a])),y:m.map(h=>f[h]*y.scale),marker:{symbol:g.map(h=>h+(a%2?"-open":"")),size:9,color:i,line:{width:1.2,
color:i}},hoverinfo:"skip",showlegend:!1,visible:!r.has(l.name),meta:{chart:e.key,annotations:l.name}})}),p}function Be(e,t,n){let o=JSON.stringify(t.map(s=>s.marks));
if(e.dataset.shown===o)return;e.dataset.shown=o;let r=s=>(n==="forward"?"pass ":"token ")+B(s.token)+": "+s.text;e.title=t.flatMap(s=>s.marks.map(i=>s.name+" "+
r(i))).join(`
`),e.replaceChildren(...t.filter(s=>s.marks.length).map(s=>{let i=x("span","td-annotation arm-"+s.name.toLowerCase());i.append(x("span","td-arm",s.name));let y=s.
marks.slice(0,wt).map(p=>kt[p.kind][1]+" "+r(p)),k=s.marks.length-wt;return i.append(document.createTextNode(y.join(", ")+(k>0?" and "+B(k)+" more":""))),i}))}var Un=["arm","series","index","seconds","latency_s","kv_sliding_bytes","kv_full_bytes","memory_bytes"];function yt(e,t){let n=[Un.join(",")],o=e.unit==="forwar\
d"?"pass":"token";return e.arms.forEach(({name:r},s)=>{let{t:i,lat:y,kvs:k,kvf:p,st:l,sm:a}=t[s];i.forEach((f,u)=>n.push([r,o,u,f,y[u],k[u],p[u],""].join(","))),
l.forEach((f,u)=>n.push([r,"sample",u,f,"","","",a[u]].join(",")))}),n.join(`
`)+`
`}function bt(e,t){let n=document.createElement("a");n.href=URL.createObjectURL(new Blob([e],{type:"text/csv"})),n.download=t,n.click(),setTimeout(()=>URL.revokeObjectURL(
n.href),1e4)}function qn(e,t,n,o){let{t:r,st:s}=n;if(e.at==="sample"){let y=t.second??(t.token<r.length?ie(r,t.token):1/0),k=j(s,y);return!s.length||y>Math.max(s[s.length-1],
r.length?r[r.length-1]:0)?null:k>0&&(k>=s.length||y-s[k-1]<s[k]-y)?k-1:k}let i=t.token??j(r,t.second);return i>=o&&i<r.length?i:null}function te(e){return e.toLocaleString(
"en-US",{maximumSignificantDigits:4})}function jn({x:e},t,n){let o=[],r=null;return e.forEach((s,i)=>{s===null?(o.push(t[r]),r=null):(r===null||Math.abs(s-n)<Math.
abs(e[r]-n))&&(r=i)}),o}function vt(e,t,n,o){let{head:r,series:s,hidden:i}=o,{unit:y,scale:k}=o.units[t],p=me(e,o),l=m=>!m.kind||p.includes(m.kind),[a]=e.lines.
filter(m=>!m.curve),f=J(e).filter(l),u=e.lines.filter(m=>m.curve&&m.at!=="sample"&&l(m));return r.arms.flatMap((m,g)=>{let h=qn(a,n,s[g],W(a,r));if(h===null||i.
has(m.name)||!f.length)return[];let c=f.map(d=>s[g][d.column][h]*d.scale*k),w=[c.map((d,v)=>te(d)+(f.length>1?" "+f[v].kind:"")).join(" + ")+" "+y],b=u.filter(d=>m[d.
curve]);if(b.length){let d=b.reduce((M,L)=>M+pe(m[L.curve].x,m[L.curve][L.column],h+Ie(L,m))*L.scale*k,0),v=Math.abs(d-c.reduce((M,L)=>M+L,0))<5e-4*d;w.push(b[0].
curve==="floor"?"roofline bound "+te(d):v?"as predicted":"predicted "+te(d))}for(let d of e.lines.filter(v=>v.curve&&v.at==="sample"&&m[v.curve])){let v=jn(m[d.
curve],m[d.curve][d.column],s[g].st[h]);w.push(d.label+" "+v.map(M=>te(M*d.scale*k)).join(", "))}return a.at==="token"&&n.token===void 0&&w.push(Ae(r)+" "+B(h)),
e.lines.some(d=>d.at==="length")&&w.push(B(m.prompt_tokens+h)+" tokens cached"),[{arm:m.name,text:w.join(", ")}]})}function Ae(e){return e.unit==="forward"?"pas\
s":"token"}function Mt(e,t,n,o,{head:r,series:s,hidden:i,axis:y,units:k,tops:p}){let[l]=J(e),a=W(l,r),f=p[t]===null?1/0:p[t]/l.scale/k[t].scale,u=null,m=o;return e.
annotations&&r.arms.forEach((g,h)=>{if(i.has(g.name))return;let c=s[h][l.column],w=new Set(g.marks.map(M=>M.token)),b=Z(l,y,s[h]),[d,v]=Le(l,y,s[h],[n-o,n+o]);for(let M=Math.
max(a,d);M<=Math.min(v,c.length-1);M++){let L=Math.abs(b(M)-n);L<=m&&(w.has(M)||c[M]>f)&&(m=L,u=b(M))}}),y==="second"?{second:Math.max(0,u??n)}:{token:u??Math.max(
0,Math.round(n))}}function Tt(e,{head:t,series:n,hidden:o}){return t.arms.flatMap((r,s)=>{let i=e.token??j(n[s].t,e.second);return o.has(r.name)?[]:r.marks.filter(
y=>y.token===i&&i<n[s].t.length).map(y=>r.name+" "+Ae(t)+" "+B(i)+": "+y.text)})}var Fn=5;function _t(e,t,n,o){let r=null,s=null,i=null,y=g=>[e._fullLayout["xaxis"+q(g)],e._fullLayout["yaxis"+q(g)]];function k(g){let h=e.getBoundingClientRect(),
c=g.clientX-h.left,w=g.clientY-h.top;for(let b=0;b<o.length;b++){let[d,v]=y(b);if(c<d._offset||c>d._offset+d._length||w<v._offset||w>v._offset+v._length)continue;
let M=c-d._offset;return{i:b,x:d.p2l(M),reach:Math.abs(d.p2l(M+Fn)-d.p2l(M))}}return null}function p(g){let h=i&&i.head&&e._fullLayout?k(g):null;r=h&&Mt(o[h.i],
h.i,h.x,h.reach,i),m()}function l(){r&&(r=null,m())}function a(g,h,c){let[w,b]=y(g);if(h===null||h<w.range[0]||h>w.range[1])return[];let d=x("i","td-moment "+c);
return Object.assign(d.style,{left:w._offset+w.l2p(h)+"px",top:b._offset+"px",height:b._length+"px"}),[d]}function f(g,h,c){let[w,b]=y(g),d=x("span","td-place",
c),v=Math.min(w._length,Math.max(0,w.l2p(h)));return Object.assign(d.style,{left:w._offset+v+"px",top:b._offset+b._length+1+"px",transform:"translateX(-"+100*v/
w._length+"%)"}),d}function u(g,h){let c=vt(o[g],g,h,i),[w,b]=y(g);if(!c.length)return[];let d=x("div","td-readout");Object.assign(d.style,{left:w._offset-4+"px",
width:w._length+8+"px",bottom:"calc(100% - "+b._offset+"px)"}),i.titles[g]&&d.append(x("strong","",i.titles[g]));for(let{arm:v,text:M}of c){let L=x("span","arm-"+
v.toLowerCase());L.append(x("b","td-arm",v),document.createTextNode(M)),d.append(L)}return[d]}function m(){let g=r||(s===null?null:{second:s}),h=[],c=g&&i&&i.head&&
e._fullLayout&&e._fullLayout.xaxis;c&&o.forEach((b,d)=>{if(!i.series.some(M=>M.t.length||M.st.length))return;let v=r?r.token??r.second:i.axis==="second"?s:null;
r?h.push(...a(d,v,"")):i.series.forEach((M,L)=>h.push(...a(d,dt(i.axis,M,s),"arm-"+i.head.arms[L].name.toLowerCase()))),v!==null&&h.push(f(d,v,i.axis==="second"?
$(v):Ae(i.head)+" "+B(v))),h.push(...u(d,g))}),t.replaceChildren(...h);let w=c?Tt(g,i):[];n.hidden=!w.length,n.replaceChildren(...w.map(b=>x("span","",b)))}return e.
addEventListener("pointermove",p),e.addEventListener("pointerdown",g=>g.pointerType==="touch"?p(g):l()),e.addEventListener("pointerleave",l),{take(g){i=g,(r||s!==
null)&&m()},pointAt(g){s=g,m()},clear(){r=null,s=null,i=null,m()}}}function Lt(e,t,n){let o=null,r=[];function s(){o=null,r=[],t.replaceChildren()}function i(a,f){s(),a.head&&(o=a,r=n.map((u,m)=>k(u,m,f)),p())}function y(a){return o&&
(o={...o,series:a}),p()}function k(a,f,u){let m=e._fullLayout["xaxis"+q(f)],g=e._fullLayout["yaxis"+q(f)],h=window.devicePixelRatio,c=x("canvas",""),w=c.getContext(
"2d"),b=me(a,o);c.width=Math.ceil(m._length*h),c.height=Math.ceil(g._length*h),Object.assign(c.style,{left:m._offset+"px",top:g._offset+"px",width:m._length+"px",
height:g._length+"px"}),w.scale(h,h),t.append(c);let d=J(a).filter(v=>!v.kind||b.includes(v.kind)).flatMap(v=>o.series.map((M,L)=>({line:v,a:L,next:Math.max(W(v,
o.head),u[L][v.column]-1),drawnPx:0,shown:![o.head.arms[L].name,v.kind].some(C=>C&&o.hidden.has(C))})));return{x:m,y:g,pen:w,lines:d,scale:o.units[f].scale}}function p(){
return o?r.map(l).some(Boolean):!1}function l({x:a,y:f,pen:u,lines:m,scale:g}){let h=!1;for(let c of m){let{line:w,a:b}=c,d=o.series[b][w.column],v=d.length;if(!c.
shown||v-c.next<2)continue;let M=Z(w,o.axis,o.series[b]),L=ee(o.head.arms[b],b),C=a.l2p(M(c.next)),O=f.l2p(d[c.next]*w.scale*g),N=c.drawnPx;u.beginPath(),u.moveTo(
C,O);for(let I=c.next+1;I<v;I++){let z=a.l2p(M(I)),D=f.l2p(d[I]*w.scale*g);u.lineTo(z,D),N+=Math.hypot(z-C,D-O),C=z,O=D,h=h||a.autorange&&C>a._length||f.autorange&&
(O<0||O>f._length)}u.strokeStyle=L.color,u.lineWidth=w.width,u.setLineDash(L.dash==="solid"?[]:L.dash.split(",").map(parseFloat)),u.lineDashOffset=c.drawnPx,u.stroke(),
c.next=v-1,c.drawnPx=N}return h}return{take:i,follow:y,draw:p,clear:s}}function oe(){return window.Plotly?Promise.resolve():window.tokendynoPlotly??=new Promise(e=>{let t=()=>{let n=document.createElement("script");n.src=settings.plotly,
n.addEventListener("load",()=>e()),n.addEventListener("error",()=>{n.remove(),setTimeout(t,1e3)}),document.head.append(n)};t()})}var Dn=760,zn=250,Hn=420,Xn=40,Wn=()=>Math.round(Math.min(420,Math.max(200,.26*window.innerHeight))),Jn={responsive:!0,displaylogo:!1,showTips:!1,showSendToCloud:!1,
displayModeBar:!1};function St(e,t,n,o,r){let s="",i=null,y=[],k=null,p=[],l=[],a=[],f=new Set,u=!1,m=0,g="token",h=null,c=0,w=!1,b=!1,d=!1,v=!1,M=!0,L=!1,C=0,O=0,
N=10,I=300,z=1e3,D=[],We=[];function cn(A){A&&wn(),s=A,i=null,y=[],k=null,p=[],f=new Set,u=!1,M=!0,h=null,w=!1,o.clear(),r.clear()}function dn(A){t.forEach((P,R)=>{
let E="xaxis"+q(R),U=A[E+".range"]||[A[E+".range[0]"],A[E+".range[1]"]];A[E+".autorange"]?h=null:i&&U[0]!==void 0&&(h=U.map(Number))}),de()}function de(){M=!0,se(
!0)}function fn(A){A!==g&&(g=A,h=h&&Pe(h,g,y),de())}function un(A,P){if(!i||w||A.unit!=="ms")return null;let[R]=J(A),E=Se(y.map(U=>U[R.column]),W(R,i));return E===
null?null:E*R.scale*p[P].scale}function pn(A,P){if(!i||!k||A.unit!=="ms")return null;let[R]=J(A),E=W(R,i),U=y.reduce((ne,we)=>we[R.column].slice(E).reduce((Y,G)=>Math.
max(Y,G),ne),0);return U?1.05*U*R.scale*p[P].scale:null}function mn(){let A={head:i,series:y,part:k,ended:u,hidden:f,axis:g,zoom:h,units:p,ink:H("--body-text-co\
lor"),neutral:H("--body-text-color-subdued")};p=t.map((E,U)=>i?ht(E,A,h&&p[U]):null),l=t.map(un),n.outliers.hidden=!w&&l.every(E=>E===null),n.outliers.setAttribute(
"aria-pressed",String(w)),_(n.outliers,w?"Cut outliers off":"Show outliers in full"),n.whole.hidden=h===null;for(let E of n.axes.querySelectorAll("button"))E.setAttribute(
"aria-pressed",String(E.dataset.axis===g));_(n.axes.firstElementChild,i&&i.unit==="forward"?"Passes":"Tokens");let P=pt(t,{...A,units:p,tops:l}),R=P.filter(E=>!E.
meta?.extent&&E.y.some(Number.isFinite)).map(E=>E.yaxis);return a=t.map((E,U)=>!k&&!R.includes("y"+q(U))),P}function hn(){let A=element.clientWidth<Dn,P=t.length,
R=A?.13:.05,E=(1-R*(P-1))/P,U=element.clientWidth*(A?1:E)<Hn,ne=H("--body-text-color"),we=H("--border-color-primary"),Y={uirevision:s+"/"+c,datarevision:++m,paper_bgcolor:"\
rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:ne,size:11,family:H("--font")||"sans-serif"},height:A?zn*P:Wn(),margin:{t:U?56:36,b:34,l:44,r:8,autoexpand:!1},
hovermode:!1,dragmode:"zoom",annotations:[]};return t.forEach((G,K)=>{let ke=K*(E+R),fe=A?[0,1]:[ke,ke+E],ue=A?[1-ke-E,1-ke]:[0,1],Ke=G.unit==="bytes"?p[K]&&p[K].
unit:G.unit,ye=i&&i.unit==="forward"&&G.encoder||G,be=V(ye.title||(i?i.memory_label:"memory")).slice(0,Xn),Ve=l[K]??pn(G,K);We[K]=U?"":be[0].toUpperCase()+be.slice(
1);let Qe={gridcolor:we,zeroline:!1,linecolor:we,ticks:"",automargin:!1,showticklabels:!!i&&!ye.note};Y["xaxis"+q(K)]={...Qe,domain:fe,anchor:"y"+q(K),uirevision:[
s,c,g].join("/"),...h?{range:[...h],autorange:!1}:{},title:{text:g==="second"?"seconds":i&&i.unit==="forward"?"forward pass":"token",standoff:2},nticks:6},Y["ya\
xis"+q(K)]={...Qe,domain:ue,anchor:"x"+q(K),rangemode:G.from_zero?"tozero":"normal",nticks:6,tickformat:",~r",...Ve===null?{}:{range:[0,Ve],autorange:!1},...a[K]?
{showticklabels:!1}:{}},i&&Y.annotations.push(...gt(G,K,{head:i,series:y,ended:u,axis:g,zoom:h,units:p},ne)),Y.annotations.push({text:"<b>"+be[0].toUpperCase()+
be.slice(1)+"</b>"+(Ke?", "+Ke:""),showarrow:!1,xref:"paper",yref:"paper",x:fe[0],y:ue[1],xanchor:"left",yanchor:"bottom",yshift:U?32:4,xshift:-4,font:{size:12}}),
ye.note&&Y.annotations.push({text:V(ye.note),showarrow:!1,xanchor:"center",xref:"paper",yref:"paper",x:(fe[0]+fe[1])/2,y:(ue[0]+ue[1])/2});let yn={orientation:"\
h",x:fe[U?0:1],y:ue[1],xanchor:U?"left":"right",yanchor:"bottom",bgcolor:"rgba(0,0,0,0)",font:{size:11},itemwidth:30};Y["legend"+q(K)]=yn}),Y}async function se(A){
if(!d||!M||L||document.hidden||!A&&performance.now()<C||!element.offsetParent)return;M=!1;let P=performance.now(),R=k||y,E=R.map(st),U=mn(),ne={head:i,series:y,
hidden:f,axis:g,units:p,tops:l,titles:We};L=!0;try{await Plotly.react(e,U,hn(),Jn)}finally{L=!1}kn(),ne.series===y&&(o.take(ne),r.take({...ne,series:R},E)),requestAnimationFrame(
()=>setTimeout(()=>{D.push(performance.now()-P),D.length>5&&D.shift(),O=performance.now()+I,C=performance.now()+Math.max(I,Math.min(z,Math.min(...D)*N)),window.
tokendynoProbe&&window.tokendynoProbe.painted(D[D.length-1])},0)),Je()}function gn(){M=!0,r.draw()&&(C=Math.min(C,O)),Je()}function Je(){if(!window.tokendynoProbe||
L||!i)return;let A=y.map(P=>P.t.length);requestAnimationFrame(()=>setTimeout(()=>window.tokendynoProbe.shows(A),0))}function xn(A){let P=A.data[A.curveNumber].meta.
legend;return f.delete(P)||f.add(P),de(),!1}async function wn(){b||(b=!0,await oe(),d=!0,setInterval(()=>{element.isConnected&&se(!1)},33),se(!0))}function kn(){
if(!v){v=!0,e.on("plotly_relayout",dn),e.on("plotly_legendclick",xn),e.on("plotly_legenddoubleclick",()=>!1),n.outliers.addEventListener("click",()=>{w=!w,de()});
for(let A of n.axes.querySelectorAll("button"))A.addEventListener("click",()=>fn(A.dataset.axis));n.whole.addEventListener("click",()=>{h=null,c++,de()})}}return{
reset:cn,take(A,P){i=A,y=P,M=!0},end(){u=!0,M=!0,se(!0)},async picture(A){return await oe(),Plotly.downloadImage(e,{format:"png",filename:A,scale:2,width:e.clientWidth,
height:e.clientHeight})},get zoom(){return h&&(g==="token"?h:Pe(h,"token",y))},grow:gn,only(A){if(k===A)return;let P=k&&A&&A.every((R,E)=>R.t.length>=k[E].t.length);
k=A,M=!0,P&&r.follow(A)&&(C=Math.min(C,O)),se(!P)},touch(){M=!0,se(!1)},pace(A,P,R){N=A,I=P,z=R}}}var Kn=10,Vn=60,Ue=200,At=[["Shortest",0],["10%",.1],["Median",.5],["90%",.9],["99%",.99],["Longest",1]];function he(e,t){return e[Math.max(0,Math.ceil(Number((t*
e.length).toFixed(9)))-1)]}function Qn(e,t,n){let o=W({first:1},e);return t.map(({lat:r})=>Float64Array.from(r.slice(Math.max(o,n?Math.ceil(n[0]):0),n?Math.floor(
n[1])+1:r.length)).sort())}function Yn(e){let t=e.filter(p=>p.length),n=Math.min(...t.map(p=>p[0])),o=Se(t.map(p=>[...p]),0)??Math.max(...t.map(p=>p[p.length-1])),
r=t.map(p=>2*(he(p,.75)-he(p,.25))/Math.cbrt(p.length)).filter(p=>p>0),s=Math.round(Math.min(Vn,Math.max(Kn,r.length?(o-n)/Math.min(...r):0))),i=o>n?(o-n)/s:Math.
max(1e-9,.01*n),y=Array.from({length:s+1},(p,l)=>n+l*i),k=e.map(()=>new Array(s).fill(0));return e.forEach((p,l)=>{for(let a of p)a<=o&&k[l][Math.min(s-1,Math.floor(
(a-n)/i))]++}),{edges:y,shares:k.map((p,l)=>p.map(a=>a/Math.max(1,e[l].length))),beyond:e.map(p=>p.length-j(p,o*(1+1e-12)))}}function Gn(e,t){let n=[];for(let o=0;o<=
Ue&&e.length;o++){let r=he(e,o/Ue);r<=t*(1+1e-12)&&n.push([r,o/Ue])}return n}function Ct(e,t,n){let o=l=>t.querySelector(l),r=o(".td-spread-plot");function s(l,a,f){
let u=Qn(l,a,f),m=l.unit==="forward"?"passes":"tokens",g=f?m+" "+B(Math.ceil(Math.max(0,f[0])))+" to "+B(Math.floor(f[1]))+", as zoomed":l.unit==="forward"?"all\
 passes":"all tokens after the first";if(_(o(".td-spread-what"),"The first run of each arm: "+g+"."),!u.some(w=>w.length)){i();return}let h=Yn(u),c=h.edges[h.edges.
length-1];_(o(".td-spread-said"),y(l,u,h,c,m)),o("table").replaceChildren(...k(l,u,m)),p(l,u,h,c,m)}function i(){_(o(".td-spread-said"),"There are no latencies \
here."),window.Plotly&&Plotly.purge(r),o("table").replaceChildren()}function y(l,a,{beyond:f},u,m){return l.arms.map(({name:g},h)=>{if(!a[h].length)return"Arm "+
g+" has none yet.";let[c,w]=[.25,.75].map(d=>te(1e3*he(a[h],d))),b=f[h]?", and "+B(f[h])+" longer than the "+te(1e3*u)+" ms that are drawn":"";return"Half of th\
e "+m+" of arm "+g+" took "+c+" to "+w+" ms"+b+"."}).join(" ")}function k(l,a,f){let u=(g,h,c)=>{let w=x("tr",c);return h.forEach((b,d)=>{let v=x(d?g:"th","",b);
v.tagName==="TH"&&(v.scope=d?"col":"row"),w.append(v)}),w},m=u("th",["ms",f[0].toUpperCase()+f.slice(1),"Mean",...At.map(([g])=>g)],"");return m.cells[0].scope=
"col",[m,...l.arms.map(({name:g},h)=>{let c=a[h],w=c.reduce((d,v)=>d+v,0)/c.length,b=At.map(([,d])=>c.length<(n[d]||1)?"needs "+n[d]:te(1e3*he(c,d)));return u("\
td",["Arm "+g,B(c.length),...c.length?[te(1e3*w),...b]:[]],"arm-"+g.toLowerCase())})]}function p(l,a,{edges:f,shares:u},m,g){let h=H("--body-text-color"),c=H("-\
-border-color-primary"),w=f.map(C=>1e3*C),b=l.arms.flatMap(({name:C},O)=>{let N={width:1.6,...ee(l.arms[O],O)},I=Gn(a[O],m),z={type:"scatter",mode:"lines",name:V(
C),line:N,hoverinfo:"skip"};return[{...z,x:w,y:[...u[O].map(D=>100*D),0],line:{...N,shape:"hv"},fill:"tozeroy",fillcolor:N.color+"30"},{...z,x:I.map(D=>1e3*D[0]),
y:I.map(D=>100*D[1]),line:{...N,shape:"hv"},xaxis:"x2",yaxis:"y2",showlegend:!1}]}),d=.02*(w[w.length-1]-w[0]),v=[w[0]-d,w[w.length-1]+d],M={gridcolor:c,linecolor:c,
zeroline:!1,nticks:6,fixedrange:!0},L=C=>({text:C,standoff:4});oe().then(()=>Plotly.react(r,b,{paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{
color:h,size:11,family:H("--font")||"sans-serif"},height:260,margin:{t:24,b:38,l:46,r:8},hovermode:!1,legend:{orientation:"h",x:1,xanchor:"right",y:1,yanchor:"b\
ottom"},xaxis:{...M,range:v,domain:[0,.47],title:L("latency, ms")},yaxis:{...M,title:L("% of "+g),rangemode:"tozero"},xaxis2:{...M,domain:[.55,1],anchor:"y2",matches:"\
x",title:L("latency, ms")},yaxis2:{...M,anchor:"x2",title:L("cumulative %"),range:[0,101]}},{staticPlot:!0,responsive:!0,showSendToCloud:!1}))}return{show:s,openOn(l){
e.addEventListener("click",()=>{l()&&(t.showModal(),s(...l()))}),t.querySelector(".td-close").addEventListener("click",()=>t.close()),t.addEventListener("click",
a=>{a.target===t&&t.close()})},follow(l){t.open&&l()&&s(...l())}}}var $n=3,Zn=8e3;function Et(e,t,n){let o=60,r=0,s=!1,i=0,y=0,k=0,p=0,l=!1,a=!1;function f(h){return new Promise((c,w)=>{let b=setTimeout(()=>w(new Error("no ans\
wer")),Zn);h.then(d=>{clearTimeout(b),c(d)},d=>{clearTimeout(b),w(d)})})}async function u(){let h=p;i++;try{let c="more";for(;c==="more";){let w=await f(e());if(h!==
p)return;a=!0,y&&(y=0,k=0,n("")),c=t(w)}c==="over"&&(l=!1)}catch{if(h!==p||!l)return;y++;let c=Math.min(1e4,250*2**y);k=performance.now()+c,n("The server does n\
ot answer. Retrying in "+$(c/1e3)+"; nothing is lost.")}finally{i--}}async function m(){if(!element.isConnected)return;let h=y||!a||s?1:$n,c=l&&!document.hidden&&
i<h&&performance.now()>=k,w=c&&u();s&&await w,setTimeout(m,Math.max(o,r))}setTimeout(m,0),document.addEventListener("visibilitychange",()=>{!document.hidden&&element.
isConnected&&l&&i===0&&(k=0,u())});function g(){p++,y=0,k=0,a=!1,l=!0,n(""),document.hidden||u()}return{begin:g,stop(){p++,l=!1},every(h,c=!1){o=h,s=c},atLeast(h){
r=h},get running(){return l}}}var Pt=4e3;function eo(e,t,n){let o=j(e.t,n);if(o>=e.t.length)return e.n.length?e.n[e.n.length-1]:0;let r=o?[e.t[o-1],e.n[o-1]]:[t,0];return n<=r[0]?r[1]:Math.floor(
r[1]+(e.n[o]-r[1])*(n-r[0])/(e.t[o]-r[0]))}function to(e,t){let n=Ot(e.t,t),o=Ot(e.st,t),r={...e};for(let s of _e)r[s]=e[s].slice(0,n);for(let s of["st","sm"])r[s]=
e[s].slice(0,o);return r}function Ot(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<=t?n=r+1:o=r}return n}function Nt(e,t,n,o,r,s){let i=null,y=[],k=0,p=0,
l=!1,a=0;function f(w,b){i=w,y=b,k=Math.max(0,...y.map(v=>v.t.length?v.t[v.t.length-1]:0));let d=k>0&&i.unit!=="forward"&&i.arms.some(v=>v.pace.t.length);e.disabled=
t.disabled=o.disabled=!d,t.max=String(k),d&&(p=k,t.value=String(k),u())}function u(){_(e,l?"❚❚ Pause":"▶ Race");let w=i?i.arms.filter((d,v)=>y[v].t.length&&
p>=y[v].t[y[v].t.length-1]).map(d=>d.name):[],b=p<k&&w.length?", "+w.join(" and ")+" done":"";_(n,k?p.toFixed(k>=100?0:k>=10?1:2)+" of "+$(k)+b:""),t.setAttribute(
"aria-valuetext",$(p))}function m(){p>=k?(r.whole(),s(null,null)):(i.arms.forEach((w,b)=>r.upTo(b,y[b].t.length?eo(w.pace,y[b].t[0],p):0)),s(p,y.map(w=>to(w,p)))),
u()}function g(w){if(!l||!element.isConnected)return;let b=Math.max(0,w-a);p=Math.min(k,p+b/1e3*Number(o.value)),a=w,p>=k&&(l=!1),t.value=String(p),m(),l&&requestAnimationFrame(
g)}function h(){l=!1,k=0,p=0,i=null,y=[],e.disabled=t.disabled=o.disabled=!0,t.value="0",s(null,null),u()}function c(){e.disabled||(l=!l,l&&(p>=k&&(p=0),a=performance.
now(),requestAnimationFrame(g)),m())}return e.addEventListener("click",c),t.addEventListener("input",()=>{l=!1,p=Number(t.value),m()}),{ready:f,clear:h,toggle:c}}var no=5e3,oo=3e3;function Rt(e){let t=[],n=null,o=[];function r(a,f){if(e.replaceChildren(),o=[],f==="forward"){t=[],e.append(x("p","td-empty","An encoder gene\
rates no text: its forward passes are timed."));return}t=a.map(u=>{let m=x("section","td-text arm-"+u.name.toLowerCase()),g=x("div","td-scroll");g.tabIndex=0,g.
setAttribute("role","region"),g.setAttribute("aria-label","Text of arm "+u.name);let h=x("div","td-body");return h.append(document.createTextNode("")),g.append(
h),m.append(g),e.append(m),{body:h}}),n=x("p","td-text-comparison",""),e.append(n)}function s(a,f){if(!f||!t[a])return;let u=t[a].body.firstChild;u.appendData(f),
u.length>no&&u.deleteData(0,u.length-oo)}function i(a,f,u){if(!t[a])return;o[a]={text:f,difference:u};let m=t[a].body;if(m.replaceChildren(),u<0){m.append(document.
createTextNode(f));return}let g=x("span","td-divergent"),h=x("mark","td-difference","≠");h.title="The texts differ from here on.",g.append(document.createTextNode(
f.slice(u))),m.append(document.createTextNode(f.slice(0,u)),h,g)}function y(){for(let{body:a}of t){let f=a.parentElement,u=a.querySelector(".td-difference");u&&
(f.scrollTop+=u.getBoundingClientRect().top-f.getBoundingClientRect().top-f.clientHeight/3)}}function k(a,f){if(!t.length)return;let u=a.map(b=>b.text),[m,g]=u,
h=u.length<2?-1:lt(m,g);if(u.forEach((b,d)=>{i(d,b,h),t[d].body.closest(".td-text").classList.toggle("td-unwritten",!b)}),y(),u.length<2)return;let c=Math.min(m.
length,g.length),w=h<0&&m.length===g.length;c?w?_(n,"The texts are identical."):h<0?_(n,"The first "+B(c)+" characters are identical; one text is longer."):f?.startsWith(
"The texts differ")?_(n,"Marked ≠: "+f):_(n,"The texts first differ at character "+B(h+1)+", marked ≠. "+(f||"")):_(n,"")}function p(a,f){if(!t[a]||!o[a])return;
let u=o[a].text.slice(0,f),m=document.createTextNode(u.slice(-Pt));t[a].body.replaceChildren(m)}function l(){t.forEach((a,f)=>{o[f]&&i(f,o[f].text,o[f].difference)}),
y()}return{build:r,append:s,finish:k,upTo:p,whole:l}}function It(e){let t=null,n=[],o=0;function r(l){e.replaceChildren(),n=l.map(a=>{let f=x("div","td-phases arm-"+a.name.toLowerCase()),u=x("span","td-steps"),m=x(
"i","td-phase-bar");return f.append(x("span","td-arm",a.name),x("b","td-label",a.label),u,m),e.append(f),{steps:u,bar:m,chips:new Map}})}function s(l,a,f){let u=l.
state==="begin"||l.state==="step",m=l.title+" "+$(u?Math.max(l.seconds,a-l.begin_s):l.seconds);return l.name==="run"&&!(t.quality&&!f)?m+=", "+B(f)+" of "+B(t.max_new_tokens)+
(t.unit==="forward"?" passes":" tokens"):u&&l.fraction!==null&&(m+=", "+Math.round(100*l.fraction)+"%"),l.wait&&(m+=", "+l.wait),u&&l.note&&(m+=" ("+l.note+")"),
l.state==="broken"?"✕ "+m:m}function i(l,a){return l.expected_s?Math.min(.95,(a-l.begin_s)/l.expected_s):0}function y(l,a){if(!t)return;let f=t.now_s+(performance.
now()-o)/1e3;t.arms.forEach((u,m)=>{let g=n[m];if(!u.phases.length){_(g.steps,a?"did not run":m?"waiting for arm "+t.arms[m-1].name:"waiting");return}g.chips.size||
g.steps.replaceChildren();for(let b of u.phases){let d=g.chips.get(b.name);d||(d=x("span",""),g.chips.set(b.name,d),g.steps.append(d));let v="td-step "+b.state;
d.className!==v&&(d.className=v),_(d,s(b,f,l[m].t.length))}let h=u.phases[u.phases.length-1],c=h.name==="run"?l[m].t.length/t.max_new_tokens:h.fraction||i(h,f),
w=u.state==="working"?(100*Math.min(1,c)).toFixed(1)+"%":"0";g.bar.style.width!==w&&(g.bar.style.width=w)})}function k(l){t=l,o=performance.now()}function p(){t=
null,n=[],e.replaceChildren()}return{build:r,take:k,tick:y,clear:p}}function Bt(e,t,n,o,r,s){function i(l,a){_(e,k(l,a)),e.classList.toggle("td-underway",!l.verdict.sentence),_(t,l.verdict.basis),_(o,l.verdict.unasked),s&&_(s,l.
verdict.pays),y(l.verdict),n.hidden=!l.digest,l.digest&&(n.className="td-digest "+l.digest.status,_(n,l.digest.line))}function y({gate:l,gate_run:a}){!r||r.textContent===
(l||"")||(r.replaceChildren(),r.title=l||"",l&&(a?r.append(Object.assign(x("a","td-gate-line",l),{href:"?"+new URLSearchParams({run:a})})):r.append(x("span","td\
-gate-line",l))))}function k(l,a){if(l.verdict.sentence)return l.verdict.sentence;if(a==="queued")return"Waiting for the runs before this one.";if(a!=="running")
return a==="done"?"The run is complete.":a==="cancelled"?"Stopped before both arms were complete: no verdict.":"";let f=l.arms.find(g=>g.state==="working");if(!f)
return"Starting.";let u=l.arms.filter(g=>g.state==="waiting").map(g=>g.name),m=f.phases.at(-1);return"Running arm "+f.name+(m?": "+m.title:"")+(u.length?"; then\
 arm "+u.join(" and ")+".":".")}function p(){_(e,""),_(t,""),_(o,""),s&&_(s,""),y({gate:"",gate_run:""}),n.hidden=!0}return{take:i,clear:p}}function Ut(e,t){let n=x("div","td-said"),o=x("div","td-four"),r=x("div","td-advice"),s=x("p","td-lead"),i=x("p","td-number"),y=x("p","td-tail"),k=x("div","td-s\
cale"),p=x("p","td-badge-said"),l=x("p","td-reason"),a=x("button","td-next");a.type="button";let f=x("div","td-ratio");f.append(i,k),n.append(s,f,y),r.append(p,
l,a),e.append(n,o,r);let u=null;a.addEventListener("click",()=>{t&&u?.next&&t(u.next)});function m(c,w=""){if(u=c,e.hidden=!c&&!w,!c){e.className="td-answer td-\
waiting",_(s,w);return}e.className="td-answer "+c.tone+(c.decided?" td-decided":""),_(s,c.lead),_(i,c.figure),_(y,c.tail),h(c),o.replaceChildren(...c.tiles.map(
g)),_(p,c.recommendation),_(l,c.reason),a.hidden=!t||!c.next,c.next&&_(a,c.next.label)}function g(c){let w=x("div","td-one"),b=x("p","td-values");return b.append(
x("b",c.b?"arm-a":"",c.a)),c.b&&b.append(x("span",""," → "),x("b","arm-b",c.b)),c.unit&&b.append(x("small",""," "+c.unit)),w.append(x("p","td-one-title",c.title),
b,x("p","td-one-note",c.note)),w}function h(c){if(k.replaceChildren(x("p","td-ends",c.ends||(c.pairs.length===1?"one pair, no interval yet":""))),c.low===null||
c.high===null)return;let w=ro(c),{ratio:b,low:d,high:v}=w,M=so(w),L=x("div","td-axis-line"),C=I=>100*(Math.log(I)-M.from)/(M.to-M.from)+"%",O=x("i","td-band");O.
style.left=C(Math.max(d,Math.exp(M.from))),O.style.right="calc(100% - "+C(Math.min(v,Math.exp(M.to)))+")",L.append(O,...w.pairs.map(I=>Object.assign(x("i","td-p\
air"),{style:"left:"+C(I)}))),M.from<0&&M.to>0&&L.append(Object.assign(x("i","td-even"),{style:"left:"+C(1),title:"as fast"})),L.append(Object.assign(x("i","td-\
middle"),{style:"left:"+C(b)}));let N=x("div","td-ticks");for(let I of[Math.exp(M.from),Math.exp(M.to)])N.append(x("span","",ao(I)));k.append(L,N)}return{take:m,
clear:()=>m(null)}}function ro({tail:e,pairs:t,ratio:n,low:o,high:r}){return!e||r>=1?{pairs:t,ratio:n,low:o,high:r}:{pairs:t.map(s=>1/s),ratio:1/n,low:1/r,high:1/
o}}function so(e){let t=e.pairs.map(Math.log),n=Math.log(e.ratio),o=Math.max(.01,Math.max(...t)-n,n-Math.min(...t)),r=Math.min(4*o,Math.max(Math.log(e.high)-n,n-
Math.log(e.low))),s=1.15*Math.max(o,r);return{from:n-s,to:n+s}}function ao(e){return(e>=10?e.toFixed(1):e.toFixed(2))+"×"}var qt=[["title","Text",""],["positions","Positions","tokens that both arms were asked to predict"],["a","Perplexity A",""],["b","Perplexity B",""],["ratio","B \
/ A","perplexity of B / perplexity of A"],["kl","KL, nats","mean divergence of B from A"],["largest","Largest KL","at a single position"],["agreement","Agreemen\
t","positions at which both find the same token most likely"],["divergence","First divergence","first position at which they do not"]];function jt(e){let t="";function n(s){
let i=JSON.stringify(s);if(i===t||(t=i,e.hidden=!s,e.replaceChildren(),!s)||(e.append(x("h3","","Quality on given texts")),e.append(o(s.rows)),s.progress&&e.append(
x("p","td-quality-progress",s.progress)),!s.compared))return;let y=x("p",""),k=x("a","td-compared","The comparison of these arms");k.href="?"+new URLSearchParams(
{run:s.compared}),y.append(k,document.createTextNode(" names this cost beside its gain.")),e.append(y)}function o(s){let i=x("div","td-quality-rows"),y=x("table",
""),k=x("tr",""),p=x("thead",""),l=x("tbody","");i.tabIndex=0,i.setAttribute("role","region"),i.setAttribute("aria-label","Quality by text");for(let[,a,f]of qt){
let u=x("th","",a);u.scope="col",u.title=f,k.append(u)}p.append(k);for(let a of s){let f=x("tr",a===s[s.length-1]?"td-all-texts":""),u=x("th","",a.title);u.scope=
"row",f.append(u,...qt.slice(1).map(([m])=>x("td","",a[m]))),l.append(f)}return y.append(p,l),i.append(y),i}function r(){t="",e.hidden=!0,e.replaceChildren()}return{
take:n,clear:r}}function Ft(e){let t=new Map,n="";function o(y,k){let p=[...new Map(y.flatMap(a=>a.tiles.map(f=>[f.key,f.label])))],l=JSON.stringify([p,y.map(a=>a.name)]);n!==l&&
s(p,y,l);for(let[a]of p){let f=y.map(d=>d.tiles.find(v=>v.key===a)),{card:u,values:m,unit:g,foot:h}=t.get(a),c=[...new Set(f.map(d=>d&&d.unit).filter(Boolean))],
w=c.length===1;m.forEach((d,v)=>{let M=f[v],L=M&&M.value!=="n/a";_(d.number,L?M.value:"–"),_(d.unit,L&&!w&&M.unit?" "+M.unit:"")}),_(g,w?c[0]:"");let b=k[a];_(
h,b?b.text:r(f.map(d=>d?d.note:""))),h.className="td-foot"+(b&&b.better?" better":""),u.title=f.map((d,v)=>d&&d.note?y[v].name+": "+d.value+" "+d.unit+", "+d.note:
"").filter(Boolean).join(`
`)}}function r(y){let[k,...p]=new Set(y.filter(Boolean)),l=y.every(Boolean);return k&&!p.length&&(l||!/\d/.test(k))?k:""}function s(y,k,p){e.replaceChildren(),t=
new Map,n=p;for(let[l,a]of y){let f=x("div","td-tile"),u=x("p","td-figure"),m=x("span","td-unit",""),g=x("small","td-foot","");f.dataset.key=l;let h=k.map(c=>{let w=x(
"b","arm-"+c.name.toLowerCase()),b=x("span","",""),d=x("small","","");return w.append(b,d),u.append(x("span","td-hidden","Arm "+c.name+": "),w),{number:b,unit:d}});
u.append(m),f.append(x("h3","",a),u,g),e.append(f),t.set(l,{card:f,values:h,unit:m,foot:g})}}function i(){for(let{card:y,values:k,unit:p,foot:l}of t.values())y.
title="",k.forEach(a=>{_(a.number,"–"),_(a.unit,"")}),_(p,""),_(l,"")}return{take:o,clear:i}}function Dt(e){let t="";function n(s){let i=s.filter(f=>f.details.length),y=JSON.stringify(i.map(f=>[f.name,f.details]));if(y===t)return;if(t=y,e.replaceChildren(),
!i.length){e.append(x("p","td-empty","Percentiles, intervals and readings of the machine appear here once an arm has finished."));return}let k=x("table",""),p=x(
"thead",""),l=x("tbody","");p.append(Me("Figure",i));let a=new Map(i.flatMap(f=>f.details.map(u=>[u.key,u.label])));for(let[f,u]of a){let m=x("tr",""),g=x("th",
"",u);g.scope="row",m.dataset.key=f,m.append(g,...i.map(h=>o(h.details.find(c=>c.key===f)))),l.append(m)}k.append(p,l),e.append(k)}function o(s){let i=x("td","");
return s&&(i.append(x("b","",s.value),document.createTextNode(s.unit?" "+s.unit:"")),s.note&&i.append(x("small","",s.note))),i}function r(){t="",e.replaceChildren()}
return{take:n,clear:r}}var io={verified:"✓ verified",partial:"◐ partial",no_effect:"○ no effect",fallback:"▲ fallback",failed:"✕ failed",unchecked:"◌ unchecked",off:"off",
not_applicable:"not applicable"};function zt(e){let t="",n=!1;function o(k,p){let l=JSON.stringify([k.map(w=>w.ledger),p]);if(l===t)return;if(t=l,e.replaceChildren(),
!p){e.append(x("p","td-empty","Proof that each choice took effect appears here once an arm has finished."));return}let a=x("table",""),f=x("tr",""),u=x("thead",
""),m=x("tbody",""),g=x("caption","","Ledger");g.append(x("small","",p.line)),a.append(g);for(let w of["Axis","Arm","Requested","Planned","Effective","Status","\
Proof"]){let b=x("th","",w);b.scope="col",b.role="columnheader",f.append(b)}u.append(f);for(let[w,b]of[[u,"rowgroup"],[m,"rowgroup"],[f,"row"]])w.role=b;let h=[
...new Set(k.flatMap(w=>w.ledger.map(b=>b.axis)))];for(let w of h){let b=s(k,w);b.forEach((d,v)=>{let M=i(d,p.titles[w]||w,v?0:b.length);M.classList.toggle("td-\
quiet",!p.shown.includes(w)),m.append(M)})}let c=x("button","td-all","");c.type="button",c.addEventListener("click",()=>{n=!n,r(a,c,h.length,p)}),a.append(u,m),
e.append(a,c),r(a,c,h.length,p)}function r(k,p,l,a){let f=!n&&!a.shown.length;k.classList.toggle("td-folded",!n),k.classList.toggle("td-none",f),k.role=f?"prese\
ntation":"table",p.hidden=a.shown.length===l,_(p,n?"Only what differs or is not verified":"All "+l+" axes with their proof"),p.setAttribute("aria-expanded",String(
n))}function s(k,p){let l=new Map;for(let a of k)for(let f of a.ledger.filter(u=>u.axis===p)){let u=JSON.stringify(f);l.has(u)?l.get(u).arms.push(a.name):l.set(
u,{...f,arms:[a.name]})}return[...l.values()]}function i(k,p,l){let a=x("tr",k.status);if(a.role="row",l){let m=x("th","",p);m.scope="rowgroup",m.rowSpan=l,m.role=
"rowheader",a.append(m)}let f=x("td","td-who");for(let m of k.arms){let g=x("span","arm-"+m.toLowerCase());g.append(x("span","td-arm",m)),f.append(g)}a.append(f);
for(let m of["requested","planned","effective"]){let g=x("td","td-choice",k[m]);g.dataset.title=m,a.append(g)}a.append(x("td","td-status",io[k.status]||k.status));
let u=x("td","td-proof",k.proof);k.reason&&u.append(x("small","",k.reason)),a.append(u);for(let m of a.querySelectorAll("td"))m.role="cell";return a}function y(){
t="",n=!1,e.replaceChildren()}return{take:o,clear:y}}var Ht={ok:"",note:"Note: ",fallback:"▲ Fallback: ",blocked:"✕ Blocked: "};function Xt(e,t){let n=t.flatMap(r=>[...r.verdicts.filter(s=>s.level!=="ok").map(
s=>({arm:r.name,level:s.level,text:Ht[s.level]+s.reason})),...r.spoilers.map(s=>({arm:r.name,level:"fallback",text:"▲ "+s})),...r.notes.map(s=>({arm:r.name,level:"\
note",text:Ht.note+s}))]),o=JSON.stringify(n);e.dataset.shown!==o&&(e.dataset.shown=o,e.replaceChildren(...n.map(r=>{let s=x("li",r.level+" arm-"+r.arm.toLowerCase());
return s.append(x("span","td-arm",r.arm),document.createTextNode(r.text)),s})))}function qe(e,{of:t,title:n,hint:o,whole:r,numbers:s,lacking:i}){let y="";function k(m){let g=m.map(d=>({name:d.name,step:t(d)})).filter(d=>d.step),h=JSON.stringify(
g);if(h===y)return;y=h,e.hidden=!g.length;let c=g.filter(d=>!d.step.missing),w=Math.max(...c.map(d=>d.step.seconds)),b=x("h3","",n);if(c.some(d=>d.step.parts.some(
v=>v.reads_s!==null))&&b.append(x("span","td-part-hint",o)),e.replaceChildren(b,...c.map(d=>l(d,w))),c.length){let d=x("div","td-part-scroll");d.tabIndex=0,d.setAttribute(
"role","region"),d.setAttribute("aria-label",s),d.append(a(c)),e.append(d)}for(let d of g){let v=x("p","arm-"+d.name.toLowerCase());v.append(x("span","td-arm",d.
name),document.createTextNode(d.step.missing?i+d.step.missing+".":p(d.step.said))),e.append(v)}}function p(m){return m[0].toUpperCase()+m.slice(1)+"."}function l({
name:m,step:g},h){let c=x("div","td-part-bar arm-"+m.toLowerCase()),w=x("div","td-part-track");c.setAttribute("aria-hidden","true");for(let b of g.parts){if(!b.
seconds)continue;let d=x("span","td-part-piece td-part "+b.key);if(d.style.width=100*b.seconds/h+"%",d.title=[b.label+" "+b.text,b.reads].filter(Boolean).join("\
, "),b.reads_s!==null){let v=x("i","td-part-need");v.style.width=Math.min(100,100*b.reads_s/b.seconds)+"%",d.append(v)}w.append(d)}return c.append(x("span","td-\
arm",m),w),c}function a(m){let g=x("table",""),h=x("thead",""),c=x("tbody","");h.append(Me("Part",m));let w=[];for(let v of m){let M=0;for(let L of v.step.parts){
let C=w.findIndex(O=>O.key===L.key);C<0?w.splice(M++,0,L):M=C+1}}for(let{key:v,label:M}of w){let L=x("tr",""),C=x("th","");L.dataset.key=v,C.scope="row",C.append(
x("i","td-part-key td-part "+v),document.createTextNode(M)),L.append(C,...m.map(O=>f(O.step.parts.find(N=>N.key===v)))),c.append(L)}let b=x("tr",""),d=x("th","",
r);return d.scope="row",b.append(d,...m.map(v=>x("td","",v.step.text))),c.append(b),g.append(h,c),g}function f(m){let g=x("td","");return m&&(g.append(x("b","",
m.text),document.createTextNode(m.seconds===null?"":" "+Math.round(100*m.share)+"%")),m.reads&&g.append(x("small","",m.reads))),g}function u(){y="",e.hidden=!0,
e.replaceChildren()}return{take:k,clear:u}}function Wt(e){let t="",n=null;function o(i){let y=JSON.stringify(i.crossing??null);if(y===t)return;if(t=y,n=i.crossing?i:null,e.hidden=!n,!n){e.replaceChildren();
return}let k=x("h3","","When does waiting pay?");k.append(x("span","td-part-hint","seconds since the imports were done, over "+(i.unit==="forward"?"forward pass\
es":"tokens written")));let p=x("div","td-crossing-plot");p.setAttribute("aria-hidden","true"),e.replaceChildren(k,p),r()}function r(){if(!n)return;let{arms:i,crossing:{
starts_s:y,steps_s:k,tokens:p,label:l}}=n,a=e.querySelector(".td-crossing-plot"),f=H("--body-text-color"),u=H("--border-color-primary"),m=2*p,g=(d,v)=>y[d]+v*k[d],
h=Math.max(...i.map((d,v)=>g(v,m))),c=i.map((d,v)=>({type:"scatter",mode:"lines",name:"Arm "+V(d.name),line:{width:2,...ee(d,v)},x:[0,m],y:[g(v,0),g(v,m)]})),w=g(
0,p),b={gridcolor:u,linecolor:u,zeroline:!1,nticks:6,fixedrange:!0};c.push({type:"scatter",mode:"markers",x:[p],y:[w],marker:{size:9,color:H("--body-background-\
fill"),line:{width:2,color:f}},showlegend:!1}),oe().then(()=>Plotly.react(a,c,{paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:f,size:11,
family:H("--font")||"sans-serif"},height:220,margin:{t:24,b:38,l:46,r:8},hovermode:!1,legend:{orientation:"h",x:1,xanchor:"right",y:1,yanchor:"bottom"},xaxis:{...b,
range:[0,m],tickformat:",",title:{text:n.unit==="forward"?"forward passes":"tokens",standoff:4}},yaxis:{...b,range:[0,1.05*h],ticksuffix:" s"},annotations:[{x:p,
y:w,text:"<b>"+V(l)+"</b>",showarrow:!1,yanchor:"top",xanchor:"left",xshift:8,yshift:-6}]},{staticPlot:!0,responsive:!0,showSendToCloud:!1}))}function s(){o({})}
return ve(r),{take:o,clear:s}}var lo="Press Run: both arms write your prompt in turn, until it is decided which is faster. Texts, speed, memory and KV cache appear here as they are written, \
with proof that each choice took effect.",Jt=new URLSearchParams(location.search).get("pace"),co=75,fo=60,Vt=_t(T(".td-plot"),T(".td-moments"),T(".td-noted"),settings.
charts),uo={outliers:T(".td-outliers"),axes:T(".td-axis"),whole:T(".td-whole")},po=Lt(T(".td-plot"),T(".td-fresh"),settings.charts),Q=St(T(".td-plot"),settings.
charts,uo,Vt,po),Ee=Rt(T(".td-texts")),je=Nt(T(".td-race"),T(".td-scrub"),T(".td-clock"),T(".td-speed"),Ee,(e,t)=>{Q.only(t),Vt.pointAt(e)}),Qt=Ct(T(".td-distri\
bution"),T(".td-spread"),settings.fewest),Yt=()=>S&&[S,F,Q.zoom],xe=It(T(".td-progress")),De=Bt(T(".td-sentence"),T(".td-basis"),T(".td-digest"),T(".td-unasked"),
T(".td-gate"),T(".td-pays")),ze=Ut(T(".td-answer"),settings.links?wo:null),Gt=jt(T(".td-quality")),$t=Ft(T(".td-tiles")),Zt=Dt(T(".td-rows")),en=zt(T(".td-ledge\
r")),tn=qe(T(".td-parts"),{of:e=>e.step,title:"Where the time of a step goes",hint:"the line under a part is the time that its bytes need",whole:"Measured",numbers:"\
Parts of a step as numbers",lacking:"Not traced: "}),nn=qe(T(".td-start"),{of:e=>e.start,title:"From process to first token",whole:"Together",numbers:"Parts of \
a start as numbers"}),on=Wt(T(".td-crossing")),F=[],S=null,X="",He=-1,rn=0,Fe=0,ce=!1,Xe=!1,re=!1,ge=!1,Ce=Et(mo,ho,e=>_(T(".td-connection"),e));async function mo(){
let e=++rn,t=X,n=F.length?F.map(Oe):[[0,0,0],[0,0,0]];ce&&n.forEach(s=>{s[2]=0});let o=ge&&!ce&&!Xe?fo:0,r=JSON.parse(await server.pull({run:t,version:He,cur:n,
wait_ms:o}));return r.seq=e,r}function ho(e){if(e.error)return Ze(X,e.error),"over";if(e.run!==X||re)return re?"over":"wait";if(e.head&&e.seq>Fe&&(Fe=e.seq,go(e)),
!S)return"wait";$e(e.status,e.queue),tt(e.trouble),Ce.atLeast(e.every_ms);let t=!1,n=!1;return e.lanes.forEach((o,r)=>{if(!F[r])return;ce&&o.cfirst===0&&it(F[r],
o);let s=at(F[r],o);Ee.append(r,s.added),n=n||s.tokens>0||s.samples>0,t=t||o.n-o.first>=settings.most}),Xe=t,n&&(Q.grow(),Qt.follow(Yt)),window.tokendynoProbe&&
window.tokendynoProbe.arrived(F.map(o=>o.t.length)),e.ended?ce?e.lanes.every(o=>o.cfirst===0)?(xo(e),"over"):"more":(ce=!0,"more"):t?"more":"wait"}function go(e){
let t=!S;S=e.head,He=e.version,t&&(F=S.arms.map(rt),Ee.build(S.arms,S.unit),xe.build(S.arms),element.classList.toggle("single",S.arms.length===1),_(T(".td-empty\
-run"),""),ae(!1)),_(T(".td-title"),S.title),_(T(".td-note"),S.note),xe.take(S),De.take(S,e.status);let n=["queued","running"].includes(e.status)&&S.arms.length===
2&&!S.quality;ze.take(S.card,n?T(".td-sentence").textContent:""),T(".td-verdict").classList.toggle("td-carded",!!S.card||n),_(T(".td-sure"),S.card?S.card.confidence:
""),settings.links&&window.tokendynoAddress?.title("compare",S.heading),Gt.take(S.quality),element.classList.toggle("td-reads",!!S.quality),$t.take(S.arms,S.differences),
Zt.take(S.arms);let o=S.arms.filter(s=>s.spoilers.length).map(s=>s.name);_(T(".td-interference"),o.length?"▲ Possible interference ("+o.join(" and ")+")":""),
Be(T(".td-annotations"),S.arms,S.unit),en.take(S.arms,S.digest),tn.take(S.arms),nn.take(S.arms),on.take(S),Xt(T(".td-remarks"),S.arms),nt(e.status,S.message)&&ae(
!S.arms.some(s=>s.prompt_tokens)),Q.take(S,F),sn(e.ended)}function sn(e){ge=!e&&(Jt?Jt==="quiet":S.quiet&&Ge),Q.pace(...ge?[60,1e3,6e3]:[10,300,1e3]),Ce.every(...ge?
[co,!0]:[60,!1])}async function Kt(){let e=X;if(!(re&&!document.hidden&&S.verdict.gate&&!S.verdict.gate_run))return;let n=JSON.parse(await server.pull({run:e,version:-1,
cur:F.map(Oe),anew:!0}).catch(()=>"{}"));!n.head||e!==X||!re||(S.verdict=n.head.verdict,S.card=n.head.card,De.take(S,n.status),ze.take(S.card))}function xo(e){re=
!0,sn(!0),xe.tick(F,!0),Ee.finish(F,S.texts),Q.end(),je.ready(S,F),element.dataset.status=e.status,element.dataset.over=e.run,trigger("finished",{run:e.run,status:e.
status}),settings.replays&&!matchMedia("(prefers-reduced-motion: reduce)").matches&&je.toggle()}function an(e){if(X=e||"",F=[],S=null,He=-1,Fe=rn,ce=!1,Xe=!1,re=
!1,et(X,["interference","sure"]),T(".td-verdict").classList.remove("td-carded"),element.classList.remove("td-reads"),settings.links&&window.dispatchEvent(new Event(
"tokendyno-run")),settings.links&&window.tokendynoAddress?.title("compare",""),T(".td-texts").replaceChildren(),Be(T(".td-annotations"),[]),je.clear(),xe.clear(),
De.clear(),ze.clear(),Gt.clear(),$t.clear(),Zt.clear(),en.clear(),tn.clear(),nn.clear(),on.clear(),Q.reset(X),_(T(".td-empty-run"),X||!settings.links?"":[lo,settings.
first].filter(Boolean).join(" ")),X||ae(!0),settings.links&&ot(X),!X){Ce.stop();return}Ce.begin()}function wo(e){let t=o=>document.querySelector(o);if(e.action===
"run"){t("#run")?.click();return}let n="#code-"+e.arm.toLowerCase();t(n)?.scrollIntoView({block:"start"}),t(n+" button")?.focus({preventScroll:!0})}function ln(){
element.isConnected&&(S&&!re&&!document.hidden&&xe.tick(F),setTimeout(ln,ge?1e3:100))}Qt.openOn(Yt);T(".td-csv").addEventListener("click",()=>{S&&bt(yt(S,F),"to\
kendyno-"+X+".csv")});T(".td-png").addEventListener("click",()=>{S&&Q.picture("tokendyno-"+X)});ve(()=>Q.touch());settings.links&&(window.addEventListener("toke\
ndyno-measured",Kt),document.addEventListener("visibilitychange",Kt));new ResizeObserver(()=>Q.touch()).observe(element);element.classList.add("td-live");element.
live={get series(){return F},get head(){return S}};watch("value",()=>{(props.value||"")!==X&&an(props.value)});ae(!0);an(props.value);ln();})();
