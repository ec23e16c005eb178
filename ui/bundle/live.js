"use strict";(()=>{var ve=e=>{new MutationObserver(()=>e()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};function x(e,t,n){let o=document.createElement(e);return t&&(o.className=t),n!==void 0&&(o.textContent=n),o}function Me(e,t){let n=x("tr","");n.append(x("th","",
e),...t.map(o=>{let r=x("th","arm-"+o.name.toLowerCase());return r.append(x("span","td-arm",o.name)),r}));for(let o of n.querySelectorAll("th"))o.scope="col";return n}
function _(e,t){e.textContent!==t&&(e.textContent=t)}function T(e){return element.querySelector(e)}function z(e){return getComputedStyle(element).getPropertyValue(
e).trim()}function I(e){return e.toLocaleString("en-US")}function $(e){return e>=100?Math.round(e)+" s":e.toFixed(e>=10?1:2)+" s"}function Ye(e){return e>=4*2**
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
o&&t.n>o){for(let s of _e){let l=e[s],b=t[s];for(let y=o-t.first;y<b.length;y++)l.push(b[y])}n.tokens=t.n-o}let r=e.st.length;if(t.sfirst<=r&&t.sn>r){for(let s=r-
t.sfirst;s<t.st.length;s++)e.st.push(t.st[s]),e.sm.push(t.sm[s]);n.samples=t.sn-r}if(t.cfirst<=e.chars&&t.cn>e.chars){let s=e.chars-t.cfirst;n.added=s?Array.from(
t.text).slice(s).join(""):t.text,e.text+=n.added,e.chars=t.cn}return n}function it(e,t){e.text=t.text,e.chars=t.cn}function lt(e,t){let n=Math.min(e.length,t.length);
for(let o=0;o<n;o++)if(e.charCodeAt(o)!==t.charCodeAt(o))return o;return-1}function q(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<t?n=r+1:o=r}return n}function ct(e,t,n,o){let r=Math.max(0,n-t);if(r<=o)return Array.from({length:r},
(l,b)=>t+b);let s=2;for(;s*(o/2-2)<r;)s*=2;for(;;){let l=Mn(e,t,n,s);if(l.length<=o)return l;s*=2}}function Mn(e,t,n,o){let r=[t];for(let s=t-t%o;s<n;s+=o){let l=Math.
max(s,t),b=Math.min(s+o,n),y=[];for(let p of e){let c=Math.min(b,p.length);if(l>=c)continue;let a=l,d=l;for(let u=l+1;u<c;u++)p[u]<p[a]?a=u:p[u]>p[d]&&(d=u);y.push(
a,d)}y.sort((p,c)=>p-c);for(let p of y)p>r[r.length-1]&&r.push(p)}return r[r.length-1]!==n-1&&r.push(n-1),r}function Z(e,t,n){return e.at==="sample"?t==="second"?o=>n.st[o]:o=>le(n.t,n.st[o]):t==="second"?o=>n.t[o]:o=>o}function Le(e,t,n,[o,r]){if(e.at==="sample"){let[
s,l]=t==="second"?[o,r]:[ie(n.t,o),ie(n.t,r)];return[q(n.st,s),q(n.st,l)]}return t==="second"?[q(n.t,o),q(n.t,r)]:[Math.floor(o),Math.ceil(r)]}function Pe([e,t],n,o){
let r=o.filter(l=>l.t.length);if(!r.length)return null;let s=r.map(({t:l})=>n==="second"?[ie(l,e),ie(l,t)]:[le(l,e),le(l,t)]);return[Math.min(...s.map(l=>l[0])),
Math.max(...s.map(l=>l[1]))]}function ft(e,{t},n){return!t.length||n>t[t.length-1]?null:e==="second"?n:n<t[0]?null:q(t,n)}function ie(e,t){if(!e.length)return 0;
let n=e.length-1,o=Math.min(n,Math.max(0,t)),r=Math.floor(o);return r===n?e[n]:e[r]+(o-r)*(e[r+1]-e[r])}function le(e,t){let n=q(e,t);return n===0?0:n>=e.length?
e.length-1:n-1+(t-e[n-1])/(e[n]-e[n-1])}var Tn=.98,_n=2,Ln=1.5,Sn=20;function Se(e,t){let n=Float64Array.from(e.flatMap(s=>s.slice(t))).sort();if(n.length<Sn)return null;
let o=n[Math.floor(Tn*(n.length-1))];return n[n.length-1]>_n*o?Ln*o:null}var dt=[{color:"#4269d0",dash:"solid"},{color:"#ff725c",dash:"5px,2.5px"},{color:"#3ca951",dash:"10px,3px"},{color:"#a463f2",dash:"9px,3px,2px,3px"},{color:"#9c\
6b4e",dash:"4px,2px,1px,2px,1px,2px"}];function ee(e,t){return dt[(e.line??t)%dt.length]}var ut="1px,3px",An=400;function pt(e,t){return e.flatMap((n,o)=>{let r={
xaxis:"x"+U(o),yaxis:"y"+U(o),type:"scatter",mode:"lines"};if(!t.head)return[{...r,x:[0,1],y:[0,1],line:{width:0},hoverinfo:"skip",showlegend:!1}];let s=t.part?
{...t,series:t.part}:t,l=me(n,t),b=En(n,o,r,l,s);return n.annotations&&b.push(...xt(n,r,s)),t.tops&&t.tops[o]!==null&&b.push(...Nn(n,o,r,s)),b.push(In(n,o,r,t)),
b.concat(Bn(n,o,r,l,t))})}function U(e){return e?e+1:""}function V(e){return e.replace(/[<>&]/g,"")}function W(e,t){return t.unit==="forward"?0:e.first}function J(e){
return e.lines.filter(t=>!t.curve)}function Ne(e,t,{head:n,series:o,axis:r,zoom:s}){let l=W(e[0],n),b=t.flatMap(c=>e.map(a=>o[c][a.column])),y=l,p=Math.max(0,...b.
map(c=>c.length));if(s){let[c,a]=Le(e[0],r,o[t[0]],s);y=Math.max(y,c-1),p=Math.min(p,a+2)}return ct(b,y,p,An)}function Re(e,t,{head:n,series:o}){return e.curve?
n.arms[t][e.curve]:o[t]}function mt(e,t){let n=0;for(let o of e.lines)t.series.forEach((r,s)=>{let l=Re(o,s,t);if(l)for(let b of l[o.column])b>n&&(n=b)});return n}
function Cn(e,{series:t}){let n=1/0;for(let o of J(e))for(let r of t)for(let s of r[o.column])s<n&&(n=s);return n<1/0?n:0}function ht(e,t,n){return e.unit!=="by\
tes"?{unit:e.unit,scale:1}:n||Ye(mt(e,t))}function me(e,t){let n=o=>t.series.some((r,s)=>{let l=Re(o,s,t),b=l&&l[o.column];return b&&b.length&&b[b.length-1]>0});
return[...new Set(e.lines.filter(o=>o.kind&&n(o)).map(o=>o.kind))]}function En(e,t,n,o,r){let{head:s,series:l,hidden:b,axis:y,ended:p}=r,{scale:c}=r.units[t],a=[],
d=J(e),u=l.map((i,w)=>w),g=d[0].at==="token"&&y==="token"?u.map(()=>Ne(d,u,r)):u.map(i=>Ne(d,[i],r)),h=(i,w,k,f)=>{let v=s.arms[w].name,M=ee(s.arms[w],w);a.push(
{...n,x:k,y:f,name:V([v,i.kind,i.label].filter(Boolean).join(" ")),showlegend:!1,hoverinfo:"skip",visible:![v,i.kind,i.label].some(L=>L&&b.has(L)),meta:{chart:e.
key,arm:v,kind:i.kind,curve:i.curve},line:{width:i.width,color:M.color,dash:i.curve?ut:M.dash},opacity:i.curve?.9:1})};for(let i of e.lines)for(let w of u){if(i.
kind&&!o.includes(i.kind))continue;let k=Re(i,w,r),f=i.scale*c;if(!k)continue;let v=k[i.column];if(i.curve&&i.at==="sample"){let L=y==="second"?k.x:k.x.map(C=>C===
null?null:le(l[w].t,C));h(i,w,L,v.map(C=>C===null?null:C*f));continue}if(i.curve){let L=Ie(i,s.arms[w]),{t:C}=l[w];if(y==="token"){let R=p?Math.max(...l.map(D=>D.
t.length))-1+L:1/0,X=Pn(k.x,R);h(i,w,X.map(D=>D-L),X.map(D=>pe(k.x,v,D)*f));continue}let P=Ne(On,[w],r).filter(R=>R+L>=k.x[0]);h(i,w,P.map(R=>C[R]),P.map(R=>pe(
k.x,v,R+L)*f));continue}let M=g[w].filter(L=>L<v.length);h(i,w,M.map(Z(i,y,k)),M.map(L=>v[L]*f))}return a}var On=[{at:"token",column:"lat",first:0,scale:1,kind:"",
width:1,curve:"",label:""}];function Ie(e,t){return e.at==="length"?t.prompt_tokens:0}function Pn(e,t){let n=e.filter(o=>o<=t);return n.length&&n.length<e.length&&
n[n.length-1]<t?[...n,t]:n}function pe(e,t,n){let o=q(e,n);return o===0||o>=e.length?t[o?e.length-1:0]:t[o-1]+(t[o]-t[o-1])*(n-e[o-1])/(e[o]-e[o-1])}function Nn(e,t,n,o){
let{head:r,series:s,hidden:l,axis:b,tops:y}=o,{unit:p,scale:c}=o.units[t],[a]=J(e);return r.arms.map((d,u)=>{let m=s[u][a.column],g=a.scale*c,h=[];for(let i=W(a,
r);i<m.length;i++)m[i]*g>y[t]&&h.push(i);return{...n,mode:"markers",x:h.map(Z(a,b,s[u])),y:h.map(()=>.985*y[t]),showlegend:!1,visible:!l.has(d.name),cliponaxis:!1,
marker:{symbol:"triangle-up"+(u%2?"-open":""),size:7,color:ee(r.arms[u],u).color},hoverinfo:"skip",text:h.map(i=>(m[i]*g).toPrecision(3)+" "+p),meta:{chart:e.key,
outliers:d.name}}})}function gt(e,t,{head:n,series:o,ended:r,axis:s,zoom:l,units:b},y){let p=e.lines.find(k=>k.curve==="floor"),c=n.arms.map((k,f)=>[k,o[f]]),a=p?
c.filter(([{floor:k}])=>k&&k[p.column].length):[];if(!a.length)return[];let{unit:d,scale:u}=b[t],m=a.map(([{floor:k},{t:f}])=>{let v=l?l[1]:r&&s==="token"?Math.
max(...o.map(L=>L.t.length))-1:1/0,M=s==="second"?le(f,v):v;return pe(k.x,k[p.column],M)*p.scale*u}),g=m.map(k=>Number(k.toPrecision(3))),i=Math.max(...m)<1.1*Math.
min(...m)?g[0]:a.map(([k],f)=>V(k.name)+" "+g[f]).join(", "),w=a.filter(([{floor:k}])=>k.exchanges).map(([{name:k,floor:f}])=>", exchanges of "+V(k)+" "+f.exchanges).
join("");return[{text:"roofline bound "+i+" "+d+w,showarrow:!1,xref:"x"+U(t)+" domain",yref:"y"+U(t),x:1,y:Math.max(...m),xanchor:"right",yanchor:"bottom",font:{
size:10,color:y}}]}var Rn=.25;function In(e,t,n,o){let{head:r,series:s,ended:l,axis:b}=o,{scale:y}=o.units[t],p=[0,Math.max(1,l?Math.max(...s.map(g=>g.t.length)):
r.max_new_tokens)];if(b==="second"){let g=Math.max(0,...s.flatMap(({t:i,st:w})=>[i,w].filter(k=>k.length).map(k=>k[k.length-1]))),h=10**Math.floor(Math.log10(Math.
max(1,g)));p=[0,l?g:Math.ceil((g+h/10)/h)*h]}let c=e.unit==="bytes"?mt(e,o)*y:0,a=e.min_span*c,d=e.from_zero?0:Cn(e,o)*y,u=l?c:c+Rn*(c-d),m=[d-a/4,Math.max(u,d+
3*a/4)];return{...n,x:p,y:m,line:{width:0},hoverinfo:"skip",showlegend:!1,meta:{chart:e.key,extent:!0}}}function Bn(e,t,n,o,{head:r,hidden:s,neutral:l}){let b=(a,d,u)=>({
...n,x:[null],y:[null],name:V(a),line:d,legend:u,showlegend:!0,hoverinfo:"skip",visible:s.has(a)?"legendonly":!0,meta:{legend:a}}),y="legend"+U(t),p=t?[]:r.arms.
map((a,d)=>b(a.name,{width:2,...ee(r.arms[d],d)},y));for(let a of o){let{width:d}=J(e).find(u=>u.kind===a);p.push(b(a,{width:d,color:l},y))}let c=a=>a.curve&&(!a.
kind||o.includes(a.kind))&&r.arms.some(d=>d[a.curve]);for(let a of new Set(e.lines.filter(c).map(d=>d.label)))p.push(b(a,{width:1.2,color:l,dash:ut},y));return p}var kt={compile:["diamond","◆"],recompile:["diamond","◆"],graph_skip:["x","✕"],window:["triangle-down","▼"],cache:["square","■"],gc:["circle","●"],throttle:[
"star","★"],foreign:["cross","✚"]},wt=3;function xt(e,t,{head:n,series:o,hidden:r,axis:s,ink:l}){let b=J(e)[0],y=W(b,n),p=[];return n.arms.forEach((c,a)=>{let d=o[a][b.
column],u=new Map(c.marks.filter(({token:h})=>h>=y&&h<d.length).reverse().map(h=>[h.token,h.kind]));if(!u.size)return;let m=[...u.keys()].sort((h,i)=>h-i),g=m.map(
h=>kt[u.get(h)][0]);p.push({...t,mode:"markers",x:m.map(Z(b,s,o[a])),y:m.map(h=>d[h]*b.scale),marker:{symbol:g.map(h=>h+(a%2?"-open":"")),size:9,color:l,line:{width:1.2,
color:l}},hoverinfo:"skip",showlegend:!1,visible:!r.has(c.name),meta:{chart:e.key,annotations:c.name}})}),p}function Be(e,t,n){let o=JSON.stringify(t.map(s=>s.marks));
if(e.dataset.shown===o)return;e.dataset.shown=o;let r=s=>(n==="forward"?"pass ":"token ")+I(s.token)+": "+s.text;e.title=t.flatMap(s=>s.marks.map(l=>s.name+" "+
r(l))).join(`
`),e.replaceChildren(...t.filter(s=>s.marks.length).map(s=>{let l=x("span","td-annotation arm-"+s.name.toLowerCase());l.append(x("span","td-arm",s.name));let b=s.
marks.slice(0,wt).map(p=>kt[p.kind][1]+" "+r(p)),y=s.marks.length-wt;return l.append(document.createTextNode(b.join(", ")+(y>0?" and "+I(y)+" more":""))),l}))}var Un=["arm","series","index","seconds","latency_s","kv_sliding_bytes","kv_full_bytes","memory_bytes"];function yt(e,t){let n=[Un.join(",")],o=e.unit==="forwar\
d"?"pass":"token";return e.arms.forEach(({name:r},s)=>{let{t:l,lat:b,kvs:y,kvf:p,st:c,sm:a}=t[s];l.forEach((d,u)=>n.push([r,o,u,d,b[u],y[u],p[u],""].join(","))),
c.forEach((d,u)=>n.push([r,"sample",u,d,"","","",a[u]].join(",")))}),n.join(`
`)+`
`}function bt(e,t){let n=document.createElement("a");n.href=URL.createObjectURL(new Blob([e],{type:"text/csv"})),n.download=t,n.click(),setTimeout(()=>URL.revokeObjectURL(
n.href),1e4)}function qn(e,t,n,o){let{t:r,st:s}=n;if(e.at==="sample"){let b=t.second??(t.token<r.length?ie(r,t.token):1/0),y=q(s,b);return!s.length||b>Math.max(s[s.length-1],
r.length?r[r.length-1]:0)?null:y>0&&(y>=s.length||b-s[y-1]<s[y]-b)?y-1:y}let l=t.token??q(r,t.second);return l>=o&&l<r.length?l:null}function te(e){return e.toLocaleString(
"en-US",{maximumSignificantDigits:4})}function jn({x:e},t,n){let o=[],r=null;return e.forEach((s,l)=>{s===null?(o.push(t[r]),r=null):(r===null||Math.abs(s-n)<Math.
abs(e[r]-n))&&(r=l)}),o}function vt(e,t,n,o){let{head:r,series:s,hidden:l}=o,{unit:b,scale:y}=o.units[t],p=me(e,o),c=m=>!m.kind||p.includes(m.kind),[a]=e.lines.
filter(m=>!m.curve),d=J(e).filter(c),u=e.lines.filter(m=>m.curve&&m.at!=="sample"&&c(m));return r.arms.flatMap((m,g)=>{let h=qn(a,n,s[g],W(a,r));if(h===null||l.
has(m.name)||!d.length)return[];let i=d.map(f=>s[g][f.column][h]*f.scale*y),w=[i.map((f,v)=>te(f)+(d.length>1?" "+d[v].kind:"")).join(" + ")+" "+b],k=u.filter(f=>m[f.
curve]);if(k.length){let f=k.reduce((M,L)=>M+pe(m[L.curve].x,m[L.curve][L.column],h+Ie(L,m))*L.scale*y,0),v=Math.abs(f-i.reduce((M,L)=>M+L,0))<5e-4*f;w.push(k[0].
curve==="floor"?"roofline bound "+te(f):v?"as predicted":"predicted "+te(f))}for(let f of e.lines.filter(v=>v.curve&&v.at==="sample"&&m[v.curve])){let v=jn(m[f.
curve],m[f.curve][f.column],s[g].st[h]);w.push(f.label+" "+v.map(M=>te(M*f.scale*y)).join(", "))}return a.at==="token"&&n.token===void 0&&w.push(Ae(r)+" "+I(h)),
e.lines.some(f=>f.at==="length")&&w.push(I(m.prompt_tokens+h)+" tokens cached"),[{arm:m.name,text:w.join(", ")}]})}function Ae(e){return e.unit==="forward"?"pas\
s":"token"}function Mt(e,t,n,o,{head:r,series:s,hidden:l,axis:b,units:y,tops:p}){let[c]=J(e),a=W(c,r),d=p[t]===null?1/0:p[t]/c.scale/y[t].scale,u=null,m=o;return e.
annotations&&r.arms.forEach((g,h)=>{if(l.has(g.name))return;let i=s[h][c.column],w=new Set(g.marks.map(M=>M.token)),k=Z(c,b,s[h]),[f,v]=Le(c,b,s[h],[n-o,n+o]);for(let M=Math.
max(a,f);M<=Math.min(v,i.length-1);M++){let L=Math.abs(k(M)-n);L<=m&&(w.has(M)||i[M]>d)&&(m=L,u=k(M))}}),b==="second"?{second:Math.max(0,u??n)}:{token:u??Math.max(
0,Math.round(n))}}function Tt(e,{head:t,series:n,hidden:o}){return t.arms.flatMap((r,s)=>{let l=e.token??q(n[s].t,e.second);return o.has(r.name)?[]:r.marks.filter(
b=>b.token===l&&l<n[s].t.length).map(b=>r.name+" "+Ae(t)+" "+I(l)+": "+b.text)})}var Fn=5;function _t(e,t,n,o){let r=null,s=null,l=null,b=g=>[e._fullLayout["xaxis"+U(g)],e._fullLayout["yaxis"+U(g)]];function y(g){let h=e.getBoundingClientRect(),
i=g.clientX-h.left,w=g.clientY-h.top;for(let k=0;k<o.length;k++){let[f,v]=b(k);if(i<f._offset||i>f._offset+f._length||w<v._offset||w>v._offset+v._length)continue;
let M=i-f._offset;return{i:k,x:f.p2l(M),reach:Math.abs(f.p2l(M+Fn)-f.p2l(M))}}return null}function p(g){let h=l&&l.head&&e._fullLayout?y(g):null;r=h&&Mt(o[h.i],
h.i,h.x,h.reach,l),m()}function c(){r&&(r=null,m())}function a(g,h,i){let[w,k]=b(g);if(h===null||h<w.range[0]||h>w.range[1])return[];let f=x("i","td-moment "+i);
return Object.assign(f.style,{left:w._offset+w.l2p(h)+"px",top:k._offset+"px",height:k._length+"px"}),[f]}function d(g,h,i){let[w,k]=b(g),f=x("span","td-place",
i),v=Math.min(w._length,Math.max(0,w.l2p(h)));return Object.assign(f.style,{left:w._offset+v+"px",top:k._offset+k._length+1+"px",transform:"translateX(-"+100*v/
w._length+"%)"}),f}function u(g,h){let i=vt(o[g],g,h,l),[w,k]=b(g);if(!i.length)return[];let f=x("div","td-readout");Object.assign(f.style,{left:w._offset-4+"px",
width:w._length+8+"px",bottom:"calc(100% - "+k._offset+"px)"}),l.titles[g]&&f.append(x("strong","",l.titles[g]));for(let{arm:v,text:M}of i){let L=x("span","arm-"+
v.toLowerCase());L.append(x("b","td-arm",v),document.createTextNode(M)),f.append(L)}return[f]}function m(){let g=r||(s===null?null:{second:s}),h=[],i=g&&l&&l.head&&
e._fullLayout&&e._fullLayout.xaxis;i&&o.forEach((k,f)=>{if(!l.series.some(M=>M.t.length||M.st.length))return;let v=r?r.token??r.second:l.axis==="second"?s:null;
r?h.push(...a(f,v,"")):l.series.forEach((M,L)=>h.push(...a(f,ft(l.axis,M,s),"arm-"+l.head.arms[L].name.toLowerCase()))),v!==null&&h.push(d(f,v,l.axis==="second"?
$(v):Ae(l.head)+" "+I(v))),h.push(...u(f,g))}),t.replaceChildren(...h);let w=i?Tt(g,l):[];n.hidden=!w.length,n.replaceChildren(...w.map(k=>x("span","",k)))}return e.
addEventListener("pointermove",p),e.addEventListener("pointerdown",g=>g.pointerType==="touch"?p(g):c()),e.addEventListener("pointerleave",c),{take(g){l=g,(r||s!==
null)&&m()},pointAt(g){s=g,m()},clear(){r=null,s=null,l=null,m()}}}function Lt(e,t,n){let o=null,r=[];function s(){o=null,r=[],t.replaceChildren()}function l(a,d){s(),a.head&&(o=a,r=n.map((u,m)=>y(u,m,d)),p())}function b(a){return o&&
(o={...o,series:a}),p()}function y(a,d,u){let m=e._fullLayout["xaxis"+U(d)],g=e._fullLayout["yaxis"+U(d)],h=window.devicePixelRatio,i=x("canvas",""),w=i.getContext(
"2d"),k=me(a,o);i.width=Math.ceil(m._length*h),i.height=Math.ceil(g._length*h),Object.assign(i.style,{left:m._offset+"px",top:g._offset+"px",width:m._length+"px",
height:g._length+"px"}),w.scale(h,h),t.append(i);let f=J(a).filter(v=>!v.kind||k.includes(v.kind)).flatMap(v=>o.series.map((M,L)=>({line:v,a:L,next:Math.max(W(v,
o.head),u[L][v.column]-1),drawnPx:0,shown:![o.head.arms[L].name,v.kind].some(C=>C&&o.hidden.has(C))})));return{x:m,y:g,pen:w,lines:f,scale:o.units[d].scale}}function p(){
return o?r.map(c).some(Boolean):!1}function c({x:a,y:d,pen:u,lines:m,scale:g}){let h=!1;for(let i of m){let{line:w,a:k}=i,f=o.series[k][w.column],v=f.length;if(!i.
shown||v-i.next<2)continue;let M=Z(w,o.axis,o.series[k]),L=ee(o.head.arms[k],k),C=a.l2p(M(i.next)),P=d.l2p(f[i.next]*w.scale*g),R=i.drawnPx;u.beginPath(),u.moveTo(
C,P);for(let X=i.next+1;X<v;X++){let D=a.l2p(M(X)),F=d.l2p(f[X]*w.scale*g);u.lineTo(D,F),R+=Math.hypot(D-C,F-P),C=D,P=F,h=h||a.autorange&&C>a._length||d.autorange&&
(P<0||P>d._length)}u.strokeStyle=L.color,u.lineWidth=w.width,u.setLineDash(L.dash==="solid"?[]:L.dash.split(",").map(parseFloat)),u.lineDashOffset=i.drawnPx,u.stroke(),
i.next=v-1,i.drawnPx=R}return h}return{take:l,follow:b,draw:p,clear:s}}function oe(){return window.Plotly?Promise.resolve():window.tokendynoPlotly??=new Promise(e=>{let t=()=>{let n=document.createElement("script");n.src=settings.plotly,
n.addEventListener("load",()=>e()),n.addEventListener("error",()=>{n.remove(),setTimeout(t,1e3)}),document.head.append(n)};t()})}var Dn=760,zn=250,Hn=420,Xn=40,Wn=()=>Math.round(Math.min(420,Math.max(200,.26*window.innerHeight))),Jn={responsive:!0,displaylogo:!1,showTips:!1,showSendToCloud:!1,
displayModeBar:!1};function St(e,t,n,o,r){let s="",l=null,b=[],y=null,p=[],c=[],a=[],d=new Set,u=!1,m=0,g="token",h=null,i=0,w=!1,k=!1,f=!1,v=!1,M=!0,L=!1,C=0,P=0,
R=10,X=300,D=1e3,F=[],We=[];function cn(A){A&&wn(),s=A,l=null,b=[],y=null,p=[],d=new Set,u=!1,M=!0,h=null,w=!1,o.clear(),r.clear()}function fn(A){t.forEach((O,N)=>{
let E="xaxis"+U(N),B=A[E+".range"]||[A[E+".range[0]"],A[E+".range[1]"]];A[E+".autorange"]?h=null:l&&B[0]!==void 0&&(h=B.map(Number))}),fe()}function fe(){M=!0,se(
!0)}function dn(A){A!==g&&(g=A,h=h&&Pe(h,g,b),fe())}function un(A,O){if(!l||w||A.unit!=="ms")return null;let[N]=J(A),E=Se(b.map(B=>B[N.column]),W(N,l));return E===
null?null:E*N.scale*p[O].scale}function pn(A,O){if(!l||!y||A.unit!=="ms")return null;let[N]=J(A),E=W(N,l),B=b.reduce((ne,we)=>we[N.column].slice(E).reduce((Y,G)=>Math.
max(Y,G),ne),0);return B?1.05*B*N.scale*p[O].scale:null}function mn(){let A={head:l,series:b,part:y,ended:u,hidden:d,axis:g,zoom:h,units:p,ink:z("--body-text-co\
lor"),neutral:z("--body-text-color-subdued")};p=t.map((E,B)=>l?ht(E,A,h&&p[B]):null),c=t.map(un),n.outliers.hidden=!w&&c.every(E=>E===null),n.outliers.setAttribute(
"aria-pressed",String(w)),_(n.outliers,w?"Cut outliers off":"Show outliers in full"),n.whole.hidden=h===null;for(let E of n.axes.querySelectorAll("button"))E.setAttribute(
"aria-pressed",String(E.dataset.axis===g));_(n.axes.firstElementChild,l&&l.unit==="forward"?"Passes":"Tokens");let O=pt(t,{...A,units:p,tops:c}),N=O.filter(E=>!E.
meta?.extent&&E.y.some(Number.isFinite)).map(E=>E.yaxis);return a=t.map((E,B)=>!y&&!N.includes("y"+U(B))),O}function hn(){let A=element.clientWidth<Dn,O=t.length,
N=A?.13:.05,E=(1-N*(O-1))/O,B=element.clientWidth*(A?1:E)<Hn,ne=z("--body-text-color"),we=z("--border-color-primary"),Y={uirevision:s+"/"+i,datarevision:++m,paper_bgcolor:"\
rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:ne,size:11,family:z("--font")||"sans-serif"},height:A?zn*O:Wn(),margin:{t:B?56:36,b:34,l:44,r:8,autoexpand:!1},
hovermode:!1,dragmode:"zoom",annotations:[]};return t.forEach((G,K)=>{let ke=K*(E+N),de=A?[0,1]:[ke,ke+E],ue=A?[1-ke-E,1-ke]:[0,1],Ke=G.unit==="bytes"?p[K]&&p[K].
unit:G.unit,ye=l&&l.unit==="forward"&&G.encoder||G,be=V(ye.title||(l?l.memory_label:"memory")).slice(0,Xn),Ve=c[K]??pn(G,K);We[K]=B?"":be[0].toUpperCase()+be.slice(
1);let Qe={gridcolor:we,zeroline:!1,linecolor:we,ticks:"",automargin:!1,showticklabels:!!l&&!ye.note};Y["xaxis"+U(K)]={...Qe,domain:de,anchor:"y"+U(K),uirevision:[
s,i,g].join("/"),...h?{range:[...h],autorange:!1}:{},title:{text:g==="second"?"seconds":l&&l.unit==="forward"?"forward pass":"token",standoff:2},nticks:6},Y["ya\
xis"+U(K)]={...Qe,domain:ue,anchor:"x"+U(K),rangemode:G.from_zero?"tozero":"normal",nticks:6,tickformat:",~r",...Ve===null?{}:{range:[0,Ve],autorange:!1},...a[K]?
{showticklabels:!1}:{}},l&&Y.annotations.push(...gt(G,K,{head:l,series:b,ended:u,axis:g,zoom:h,units:p},ne)),Y.annotations.push({text:"<b>"+be[0].toUpperCase()+
be.slice(1)+"</b>"+(Ke?", "+Ke:""),showarrow:!1,xref:"paper",yref:"paper",x:de[0],y:ue[1],xanchor:"left",yanchor:"bottom",yshift:B?32:4,xshift:-4,font:{size:12}}),
ye.note&&Y.annotations.push({text:V(ye.note),showarrow:!1,xanchor:"center",xref:"paper",yref:"paper",x:(de[0]+de[1])/2,y:(ue[0]+ue[1])/2});let yn={orientation:"\
h",x:de[B?0:1],y:ue[1],xanchor:B?"left":"right",yanchor:"bottom",bgcolor:"rgba(0,0,0,0)",font:{size:11},itemwidth:30};Y["legend"+U(K)]=yn}),Y}async function se(A){
if(!f||!M||L||document.hidden||!A&&performance.now()<C||!element.offsetParent)return;M=!1;let O=performance.now(),N=y||b,E=N.map(st),B=mn(),ne={head:l,series:b,
hidden:d,axis:g,units:p,tops:c,titles:We};L=!0;try{await Plotly.react(e,B,hn(),Jn)}finally{L=!1}kn(),ne.series===b&&(o.take(ne),r.take({...ne,series:N},E)),requestAnimationFrame(
()=>setTimeout(()=>{F.push(performance.now()-O),F.length>5&&F.shift(),P=performance.now()+X,C=performance.now()+Math.max(X,Math.min(D,Math.min(...F)*R)),window.
tokendynoProbe&&window.tokendynoProbe.painted(F[F.length-1])},0)),Je()}function gn(){M=!0,r.draw()&&(C=Math.min(C,P)),Je()}function Je(){if(!window.tokendynoProbe||
L||!l)return;let A=b.map(O=>O.t.length);requestAnimationFrame(()=>setTimeout(()=>window.tokendynoProbe.shows(A),0))}function xn(A){let O=A.data[A.curveNumber].meta.
legend;return d.delete(O)||d.add(O),fe(),!1}async function wn(){k||(k=!0,await oe(),f=!0,setInterval(()=>{element.isConnected&&se(!1)},33),se(!0))}function kn(){
if(!v){v=!0,e.on("plotly_relayout",fn),e.on("plotly_legendclick",xn),e.on("plotly_legenddoubleclick",()=>!1),n.outliers.addEventListener("click",()=>{w=!w,fe()});
for(let A of n.axes.querySelectorAll("button"))A.addEventListener("click",()=>dn(A.dataset.axis));n.whole.addEventListener("click",()=>{h=null,i++,fe()})}}return{
reset:cn,take(A,O){l=A,b=O,M=!0},end(){u=!0,M=!0,se(!0)},async picture(A){return await oe(),Plotly.downloadImage(e,{format:"png",filename:A,scale:2,width:e.clientWidth,
height:e.clientHeight})},get zoom(){return h&&(g==="token"?h:Pe(h,"token",b))},grow:gn,only(A){if(y===A)return;let O=y&&A&&A.every((N,E)=>N.t.length>=y[E].t.length);
y=A,M=!0,O&&r.follow(A)&&(C=Math.min(C,P)),se(!O)},touch(){M=!0,se(!1)},pace(A,O,N){R=A,X=O,D=N}}}var Kn=10,Vn=60,Ue=200,At=[["Shortest",0],["10%",.1],["Median",.5],["90%",.9],["99%",.99],["Longest",1]];function he(e,t){return e[Math.max(0,Math.ceil(Number((t*
e.length).toFixed(9)))-1)]}function Qn(e,t,n){let o=W({first:1},e);return t.map(({lat:r})=>Float64Array.from(r.slice(Math.max(o,n?Math.ceil(n[0]):0),n?Math.floor(
n[1])+1:r.length)).sort())}function Yn(e){let t=e.filter(p=>p.length),n=Math.min(...t.map(p=>p[0])),o=Se(t.map(p=>[...p]),0)??Math.max(...t.map(p=>p[p.length-1])),
r=t.map(p=>2*(he(p,.75)-he(p,.25))/Math.cbrt(p.length)).filter(p=>p>0),s=Math.round(Math.min(Vn,Math.max(Kn,r.length?(o-n)/Math.min(...r):0))),l=o>n?(o-n)/s:Math.
max(1e-9,.01*n),b=Array.from({length:s+1},(p,c)=>n+c*l),y=e.map(()=>new Array(s).fill(0));return e.forEach((p,c)=>{for(let a of p)a<=o&&y[c][Math.min(s-1,Math.floor(
(a-n)/l))]++}),{edges:b,shares:y.map((p,c)=>p.map(a=>a/Math.max(1,e[c].length))),beyond:e.map(p=>p.length-q(p,o*(1+1e-12)))}}function Gn(e,t){let n=[];for(let o=0;o<=
Ue&&e.length;o++){let r=he(e,o/Ue);r<=t*(1+1e-12)&&n.push([r,o/Ue])}return n}function Ct(e,t,n){let o=c=>t.querySelector(c),r=o(".td-spread-plot");function s(c,a,d){
let u=Qn(c,a,d),m=c.unit==="forward"?"passes":"tokens",g=d?m+" "+I(Math.ceil(Math.max(0,d[0])))+" to "+I(Math.floor(d[1]))+", as zoomed":c.unit==="forward"?"all\
 passes":"all tokens after the first";if(_(o(".td-spread-what"),"The first run of each arm: "+g+"."),!u.some(w=>w.length)){l();return}let h=Yn(u),i=h.edges[h.edges.
length-1];_(o(".td-spread-said"),b(c,u,h,i,m)),o("table").replaceChildren(...y(c,u,m)),p(c,u,h,i,m)}function l(){_(o(".td-spread-said"),"There are no latencies \
here."),window.Plotly&&Plotly.purge(r),o("table").replaceChildren()}function b(c,a,{beyond:d},u,m){return c.arms.map(({name:g},h)=>{if(!a[h].length)return"Arm "+
g+" has none yet.";let[i,w]=[.25,.75].map(f=>te(1e3*he(a[h],f))),k=d[h]?", and "+I(d[h])+" longer than the "+te(1e3*u)+" ms that are drawn":"";return"Half of th\
e "+m+" of arm "+g+" took "+i+" to "+w+" ms"+k+"."}).join(" ")}function y(c,a,d){let u=(g,h,i)=>{let w=x("tr",i);return h.forEach((k,f)=>{let v=x(f?g:"th","",k);
v.tagName==="TH"&&(v.scope=f?"col":"row"),w.append(v)}),w},m=u("th",["ms",d[0].toUpperCase()+d.slice(1),"Mean",...At.map(([g])=>g)],"");return m.cells[0].scope=
"col",[m,...c.arms.map(({name:g},h)=>{let i=a[h],w=i.reduce((f,v)=>f+v,0)/i.length,k=At.map(([,f])=>i.length<(n[f]||1)?"needs "+n[f]:te(1e3*he(i,f)));return u("\
td",["Arm "+g,I(i.length),...i.length?[te(1e3*w),...k]:[]],"arm-"+g.toLowerCase())})]}function p(c,a,{edges:d,shares:u},m,g){let h=z("--body-text-color"),i=z("-\
-border-color-primary"),w=d.map(C=>1e3*C),k=c.arms.flatMap(({name:C},P)=>{let R={width:1.6,...ee(c.arms[P],P)},X=Gn(a[P],m),D={type:"scatter",mode:"lines",name:V(
C),line:R,hoverinfo:"skip"};return[{...D,x:w,y:[...u[P].map(F=>100*F),0],line:{...R,shape:"hv"},fill:"tozeroy",fillcolor:R.color+"30"},{...D,x:X.map(F=>1e3*F[0]),
y:X.map(F=>100*F[1]),line:{...R,shape:"hv"},xaxis:"x2",yaxis:"y2",showlegend:!1}]}),f=.02*(w[w.length-1]-w[0]),v=[w[0]-f,w[w.length-1]+f],M={gridcolor:i,linecolor:i,
zeroline:!1,nticks:6,fixedrange:!0},L=C=>({text:C,standoff:4});oe().then(()=>Plotly.react(r,k,{paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{
color:h,size:11,family:z("--font")||"sans-serif"},height:260,margin:{t:24,b:38,l:46,r:8},hovermode:!1,legend:{orientation:"h",x:1,xanchor:"right",y:1,yanchor:"b\
ottom"},xaxis:{...M,range:v,domain:[0,.47],title:L("latency, ms")},yaxis:{...M,title:L("% of "+g),rangemode:"tozero"},xaxis2:{...M,domain:[.55,1],anchor:"y2",matches:"\
x",title:L("latency, ms")},yaxis2:{...M,anchor:"x2",title:L("cumulative %"),range:[0,101]}},{staticPlot:!0,responsive:!0,showSendToCloud:!1}))}return{show:s,openOn(c){
e.addEventListener("click",()=>{c()&&(t.showModal(),s(...c()))}),t.querySelector(".td-close").addEventListener("click",()=>t.close()),t.addEventListener("click",
a=>{a.target===t&&t.close()})},follow(c){t.open&&c()&&s(...c())}}}var $n=3,Zn=8e3;function Et(e,t,n){let o=60,r=0,s=!1,l=0,b=0,y=0,p=0,c=!1,a=!1;function d(h){return new Promise((i,w)=>{let k=setTimeout(()=>w(new Error("no ans\
wer")),Zn);h.then(f=>{clearTimeout(k),i(f)},f=>{clearTimeout(k),w(f)})})}async function u(){let h=p;l++;try{let i="more";for(;i==="more";){let w=await d(e());if(h!==
p)return;a=!0,b&&(b=0,y=0,n("")),i=t(w)}i==="over"&&(c=!1)}catch{if(h!==p||!c)return;b++;let i=Math.min(1e4,250*2**b);y=performance.now()+i,n("The server does n\
ot answer. Retrying in "+$(i/1e3)+"; nothing is lost.")}finally{l--}}async function m(){if(!element.isConnected)return;let h=b||!a||s?1:$n,i=c&&!document.hidden&&
l<h&&performance.now()>=y,w=i&&u();s&&await w,setTimeout(m,Math.max(o,r))}setTimeout(m,0),document.addEventListener("visibilitychange",()=>{!document.hidden&&element.
isConnected&&c&&l===0&&(y=0,u())});function g(){p++,b=0,y=0,a=!1,c=!0,n(""),document.hidden||u()}return{begin:g,stop(){p++,c=!1},every(h,i=!1){o=h,s=i},atLeast(h){
r=h},get running(){return c}}}var Pt=4e3;function eo(e,t,n){let o=q(e.t,n);if(o>=e.t.length)return e.n.length?e.n[e.n.length-1]:0;let r=o?[e.t[o-1],e.n[o-1]]:[t,0];return n<=r[0]?r[1]:Math.floor(
r[1]+(e.n[o]-r[1])*(n-r[0])/(e.t[o]-r[0]))}function to(e,t){let n=Ot(e.t,t),o=Ot(e.st,t),r={...e};for(let s of _e)r[s]=e[s].slice(0,n);for(let s of["st","sm"])r[s]=
e[s].slice(0,o);return r}function Ot(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<=t?n=r+1:o=r}return n}function Nt(e,t,n,o,r,s){let l=null,b=[],y=0,p=0,
c=!1,a=0;function d(w,k){l=w,b=k,y=Math.max(0,...b.map(v=>v.t.length?v.t[v.t.length-1]:0));let f=y>0&&l.unit!=="forward"&&l.arms.some(v=>v.pace.t.length);e.disabled=
t.disabled=o.disabled=!f,t.max=String(y),f&&(p=y,t.value=String(y),u())}function u(){_(e,c?"❚❚ Pause":"▶ Race");let w=l?l.arms.filter((f,v)=>b[v].t.length&&
p>=b[v].t[b[v].t.length-1]).map(f=>f.name):[],k=p<y&&w.length?", "+w.join(" and ")+" done":"";_(n,y?p.toFixed(y>=100?0:y>=10?1:2)+" of "+$(y)+k:""),t.setAttribute(
"aria-valuetext",$(p))}function m(){p>=y?(r.whole(),s(null,null)):(l.arms.forEach((w,k)=>r.upTo(k,b[k].t.length?eo(w.pace,b[k].t[0],p):0)),s(p,b.map(w=>to(w,p)))),
u()}function g(w){if(!c||!element.isConnected)return;let k=Math.max(0,w-a);p=Math.min(y,p+k/1e3*Number(o.value)),a=w,p>=y&&(c=!1),t.value=String(p),m(),c&&requestAnimationFrame(
g)}function h(){c=!1,y=0,p=0,l=null,b=[],e.disabled=t.disabled=o.disabled=!0,t.value="0",s(null,null),u()}function i(){e.disabled||(c=!c,c&&(p>=y&&(p=0),a=performance.
now(),requestAnimationFrame(g)),m())}return e.addEventListener("click",i),t.addEventListener("input",()=>{c=!1,p=Number(t.value),m()}),{ready:d,clear:h,toggle:i}}var no=5e3,oo=3e3;function Rt(e){let t=[],n=null,o=[];function r(a,d){if(e.replaceChildren(),o=[],d==="forward"){t=[],e.append(x("p","td-empty","An encoder gene\
rates no text: its forward passes are timed."));return}t=a.map(u=>{let m=x("section","td-text arm-"+u.name.toLowerCase()),g=x("div","td-scroll");g.tabIndex=0,g.
setAttribute("role","region"),g.setAttribute("aria-label","Text of arm "+u.name);let h=x("div","td-body");return h.append(document.createTextNode("")),g.append(
h),m.append(g),e.append(m),{body:h}}),n=x("p","td-text-comparison",""),e.append(n)}function s(a,d){if(!d||!t[a])return;let u=t[a].body.firstChild;u.appendData(d),
u.length>no&&u.deleteData(0,u.length-oo)}function l(a,d,u){if(!t[a])return;o[a]={text:d,difference:u};let m=t[a].body;if(m.replaceChildren(),u<0){m.append(document.
createTextNode(d));return}let g=x("span","td-divergent"),h=x("mark","td-difference","≠");h.title="The texts differ from here on.",g.append(document.createTextNode(
d.slice(u))),m.append(document.createTextNode(d.slice(0,u)),h,g)}function b(){for(let{body:a}of t){let d=a.parentElement,u=a.querySelector(".td-difference");u&&
(d.scrollTop+=u.getBoundingClientRect().top-d.getBoundingClientRect().top-d.clientHeight/3)}}function y(a,d){if(!t.length)return;let u=a.map(k=>k.text),[m,g]=u,
h=u.length<2?-1:lt(m,g);if(u.forEach((k,f)=>{l(f,k,h),t[f].body.closest(".td-text").classList.toggle("td-unwritten",!k)}),b(),u.length<2)return;let i=Math.min(m.
length,g.length),w=h<0&&m.length===g.length;i?w?_(n,"The texts are identical."):h<0?_(n,"The first "+I(i)+" characters are identical; one text is longer."):d?.startsWith(
"The texts differ")?_(n,"Marked ≠: "+d):_(n,"The texts first differ at character "+I(h+1)+", marked ≠. "+(d||"")):_(n,"")}function p(a,d){if(!t[a]||!o[a])return;
let u=o[a].text.slice(0,d),m=document.createTextNode(u.slice(-Pt));t[a].body.replaceChildren(m)}function c(){t.forEach((a,d)=>{o[d]&&l(d,o[d].text,o[d].difference)}),
b()}return{build:r,append:s,finish:y,upTo:p,whole:c}}function It(e){let t=null,n=[],o=0;function r(c){e.replaceChildren(),n=c.map(a=>{let d=x("div","td-phases arm-"+a.name.toLowerCase()),u=x("span","td-steps"),m=x(
"i","td-phase-bar");return d.append(x("span","td-arm",a.name),x("b","td-label",a.label),u,m),e.append(d),{steps:u,bar:m,chips:new Map}})}function s(c,a,d){let u=c.
state==="begin"||c.state==="step",m=c.title+" "+$(u?Math.max(c.seconds,a-c.begin_s):c.seconds);return c.name==="run"&&!(t.quality&&!d)?m+=", "+I(d)+" of "+I(t.max_new_tokens)+
(t.unit==="forward"?" passes":" tokens"):u&&c.fraction!==null&&(m+=", "+Math.round(100*c.fraction)+"%"),c.wait&&(m+=", "+c.wait),u&&c.note&&(m+=" ("+c.note+")"),
c.state==="broken"?"✕ "+m:m}function l(c,a){return c.expected_s?Math.min(.95,(a-c.begin_s)/c.expected_s):0}function b(c,a){if(!t)return;let d=t.now_s+(performance.
now()-o)/1e3;t.arms.forEach((u,m)=>{let g=n[m];if(!u.phases.length){_(g.steps,a?"did not run":m?"waiting for arm "+t.arms[m-1].name:"waiting");return}g.chips.size||
g.steps.replaceChildren();for(let k of u.phases){let f=g.chips.get(k.name);f||(f=x("span",""),g.chips.set(k.name,f),g.steps.append(f));let v="td-step "+k.state;
f.className!==v&&(f.className=v),_(f,s(k,d,c[m].t.length))}let h=u.phases[u.phases.length-1],i=h.name==="run"?c[m].t.length/t.max_new_tokens:h.fraction||l(h,d),
w=u.state==="working"?(100*Math.min(1,i)).toFixed(1)+"%":"0";g.bar.style.width!==w&&(g.bar.style.width=w)})}function y(c){t=c,o=performance.now()}function p(){t=
null,n=[],e.replaceChildren()}return{build:r,take:y,tick:b,clear:p}}function Bt(e,t,n,o,r,s){function l(c,a){_(e,y(c,a)),e.classList.toggle("td-underway",!c.verdict.sentence),_(t,c.verdict.basis),_(o,c.verdict.unasked),s&&_(s,c.
verdict.pays),b(c.verdict),n.hidden=!c.digest,c.digest&&(n.className="td-digest "+c.digest.status,_(n,c.digest.line))}function b({gate:c,gate_run:a}){!r||r.textContent===
(c||"")||(r.replaceChildren(),r.title=c||"",c&&(a?r.append(Object.assign(x("a","td-gate-line",c),{href:"?"+new URLSearchParams({run:a})})):r.append(x("span","td\
-gate-line",c))))}function y(c,a){if(c.verdict.sentence)return c.verdict.sentence;if(a==="queued")return"Waiting for the runs before this one.";if(a!=="running")
return a==="done"?"The run is complete.":a==="cancelled"?"Stopped before both arms were complete: no verdict.":"";let d=c.arms.find(g=>g.state==="working");if(!d)
return"Starting.";let u=c.arms.filter(g=>g.state==="waiting").map(g=>g.name),m=d.phases.at(-1);return"Running arm "+d.name+(m?": "+m.title:"")+(u.length?"; then\
 arm "+u.join(" and ")+".":".")}function p(){_(e,""),_(t,""),_(o,""),s&&_(s,""),b({gate:"",gate_run:""}),n.hidden=!0}return{take:l,clear:p}}function Ut(e,t){let n=x("div","td-said"),o=x("div","td-four"),r=x("div","td-advice"),s=x("p","td-lead"),l=x("p","td-number"),b=x("p","td-tail"),y=x("div","td-s\
cale"),p=x("p","td-badge-said"),c=x("p","td-reason"),a=x("button","td-next");a.type="button";let d=x("div","td-ratio");d.append(l,y),n.append(s,d,b),r.append(p,
c,a),e.append(n,o,r);let u=null;a.addEventListener("click",()=>{t&&u?.next&&t(u.next)});function m(i){u=i,e.hidden=!i,i&&(e.className="td-answer "+i.tone+(i.decided?
" td-decided":""),_(s,i.lead),_(l,i.figure),_(b,i.tail),h(i),o.replaceChildren(...i.tiles.map(g)),_(p,i.recommendation),_(c,i.reason),a.hidden=!t||!i.next,i.next&&
_(a,i.next.label))}function g(i){let w=x("div","td-one"),k=x("p","td-values");return k.append(x("b",i.b?"arm-a":"",i.a)),i.b&&k.append(x("span",""," → "),x("b",
"arm-b",i.b)),i.unit&&k.append(x("small",""," "+i.unit)),w.append(x("h3","",i.title),k,x("p","td-one-note",i.note)),w}function h(i){if(y.replaceChildren(x("p","\
td-ends",i.ends||(i.pairs.length===1?"one pair, no interval yet":""))),i.low===null||i.high===null)return;let w=ro(i),k=x("div","td-axis-line"),f=L=>100*(Math.log(
L)-w.from)/(w.to-w.from)+"%",v=x("i","td-band");v.style.left=f(Math.max(i.low,Math.exp(w.from))),v.style.right="calc(100% - "+f(Math.min(i.high,Math.exp(w.to)))+
")",k.append(v,...i.pairs.map(L=>Object.assign(x("i","td-pair"),{style:"left:"+f(L)}))),w.from<0&&w.to>0&&k.append(Object.assign(x("i","td-even"),{style:"left:"+
f(1),title:"as fast"})),k.append(Object.assign(x("i","td-middle"),{style:"left:"+f(i.ratio)}));let M=x("div","td-ticks");for(let L of[Math.exp(w.from),Math.exp(
w.to)])M.append(x("span","",so(L)));y.append(k,M)}return{take:m,clear:()=>m(null)}}function ro(e){let t=e.pairs.map(Math.log),n=Math.log(e.ratio),o=Math.max(.01,
Math.max(...t)-n,n-Math.min(...t)),r=Math.min(4*o,Math.max(Math.log(e.high)-n,n-Math.log(e.low))),s=1.15*Math.max(o,r);return{from:n-s,to:n+s}}function so(e){return(e>=
10?e.toFixed(1):e.toFixed(2))+"×"}var qt=[["title","Text",""],["positions","Positions","tokens that both arms were asked to predict"],["a","Perplexity A",""],["b","Perplexity B",""],["ratio","B \
/ A","perplexity of B / perplexity of A"],["kl","KL, nats","mean divergence of B from A"],["largest","Largest KL","at a single position"],["agreement","Agreemen\
t","positions at which both find the same token most likely"],["divergence","First divergence","first position at which they do not"]];function jt(e){let t="";function n(s){
let l=JSON.stringify(s);if(l===t||(t=l,e.hidden=!s,e.replaceChildren(),!s)||(e.append(x("h3","","Quality on given texts")),e.append(o(s.rows)),s.progress&&e.append(
x("p","td-quality-progress",s.progress)),s.note&&e.append(x("p","",s.note)),!s.compared))return;let b=x("p",""),y=x("a","td-compared","The comparison of these a\
rms");y.href="?"+new URLSearchParams({run:s.compared}),b.append(y,document.createTextNode(" names this cost beside its gain.")),e.append(b)}function o(s){let l=x(
"div","td-quality-rows"),b=x("table",""),y=x("tr",""),p=x("thead",""),c=x("tbody","");l.tabIndex=0,l.setAttribute("role","region"),l.setAttribute("aria-label","\
Quality by text");for(let[,a,d]of qt){let u=x("th","",a);u.scope="col",u.title=d,y.append(u)}p.append(y);for(let a of s){let d=x("tr",a===s[s.length-1]?"td-all-\
texts":""),u=x("th","",a.title);u.scope="row",d.append(u,...qt.slice(1).map(([m])=>x("td","",a[m]))),c.append(d)}return b.append(p,c),l.append(b),l}function r(){
t="",e.hidden=!0,e.replaceChildren()}return{take:n,clear:r}}function Ft(e){let t=new Map,n="";function o(b,y){let p=[...new Map(b.flatMap(a=>a.tiles.map(d=>[d.key,d.label])))],c=JSON.stringify([p,b.map(a=>a.name)]);n!==c&&
s(p,b,c);for(let[a]of p){let d=b.map(f=>f.tiles.find(v=>v.key===a)),{card:u,values:m,unit:g,foot:h}=t.get(a),i=[...new Set(d.map(f=>f&&f.unit).filter(Boolean))],
w=i.length===1;m.forEach((f,v)=>{let M=d[v],L=M&&M.value!=="n/a";_(f.number,L?M.value:"–"),_(f.unit,L&&!w&&M.unit?" "+M.unit:"")}),_(g,w?i[0]:"");let k=y[a];_(
h,k?k.text:r(d.map(f=>f?f.note:""))),h.className="td-foot"+(k&&k.better?" better":""),u.title=d.map((f,v)=>f&&f.note?b[v].name+": "+f.value+" "+f.unit+", "+f.note:
"").filter(Boolean).join(`
`)}}function r(b){let[y,...p]=new Set(b.filter(Boolean)),c=b.every(Boolean);return y&&!p.length&&(c||!/\d/.test(y))?y:""}function s(b,y,p){e.replaceChildren(),t=
new Map,n=p;for(let[c,a]of b){let d=x("div","td-tile"),u=x("p","td-figure"),m=x("span","td-unit",""),g=x("small","td-foot","");d.dataset.key=c;let h=y.map(i=>{let w=x(
"b","arm-"+i.name.toLowerCase()),k=x("span","",""),f=x("small","","");return w.append(k,f),u.append(x("span","td-hidden","Arm "+i.name+": "),w),{number:k,unit:f}});
u.append(m),d.append(x("h3","",a),u,g),e.append(d),t.set(c,{card:d,values:h,unit:m,foot:g})}}function l(){for(let{card:b,values:y,unit:p,foot:c}of t.values())b.
title="",y.forEach(a=>{_(a.number,"–"),_(a.unit,"")}),_(p,""),_(c,"")}return{take:o,clear:l}}function Dt(e){let t="";function n(s){let l=s.filter(d=>d.details.length),b=JSON.stringify(l.map(d=>[d.name,d.details]));if(b===t)return;if(t=b,e.replaceChildren(),
!l.length){e.append(x("p","td-empty","Percentiles, intervals and readings of the machine appear here once an arm has finished."));return}let y=x("table",""),p=x(
"thead",""),c=x("tbody","");p.append(Me("Figure",l));let a=new Map(l.flatMap(d=>d.details.map(u=>[u.key,u.label])));for(let[d,u]of a){let m=x("tr",""),g=x("th",
"",u);g.scope="row",m.dataset.key=d,m.append(g,...l.map(h=>o(h.details.find(i=>i.key===d)))),c.append(m)}y.append(p,c),e.append(y)}function o(s){let l=x("td","");
return s&&(l.append(x("b","",s.value),document.createTextNode(s.unit?" "+s.unit:"")),s.note&&l.append(x("small","",s.note))),l}function r(){t="",e.replaceChildren()}
return{take:n,clear:r}}var ao={verified:"✓ verified",partial:"◐ partial",no_effect:"○ no effect",fallback:"▲ fallback",failed:"✕ failed",unchecked:"◌ unchecked",off:"off",
not_applicable:"not applicable"};function zt(e){let t="",n=!1;function o(y,p){let c=JSON.stringify([y.map(w=>w.ledger),p]);if(c===t)return;if(t=c,e.replaceChildren(),
!p){e.append(x("p","td-empty","Proof that each choice took effect appears here once an arm has finished."));return}let a=x("table",""),d=x("tr",""),u=x("thead",
""),m=x("tbody",""),g=x("caption","","Ledger");g.append(x("small","",p.line)),a.append(g);for(let w of["Axis","Arm","Requested","Planned","Effective","Status","\
Proof"]){let k=x("th","",w);k.scope="col",k.role="columnheader",d.append(k)}u.append(d);for(let[w,k]of[[u,"rowgroup"],[m,"rowgroup"],[d,"row"]])w.role=k;let h=[
...new Set(y.flatMap(w=>w.ledger.map(k=>k.axis)))];for(let w of h){let k=s(y,w);k.forEach((f,v)=>{let M=l(f,p.titles[w]||w,v?0:k.length);M.classList.toggle("td-\
quiet",!p.shown.includes(w)),m.append(M)})}let i=x("button","td-all","");i.type="button",i.addEventListener("click",()=>{n=!n,r(a,i,h.length,p)}),a.append(u,m),
e.append(a,i),r(a,i,h.length,p)}function r(y,p,c,a){let d=!n&&!a.shown.length;y.classList.toggle("td-folded",!n),y.classList.toggle("td-none",d),y.role=d?"prese\
ntation":"table",p.hidden=a.shown.length===c,_(p,n?"Only what differs or is not verified":"All "+c+" axes with their proof"),p.setAttribute("aria-expanded",String(
n))}function s(y,p){let c=new Map;for(let a of y)for(let d of a.ledger.filter(u=>u.axis===p)){let u=JSON.stringify(d);c.has(u)?c.get(u).arms.push(a.name):c.set(
u,{...d,arms:[a.name]})}return[...c.values()]}function l(y,p,c){let a=x("tr",y.status);if(a.role="row",c){let m=x("th","",p);m.scope="rowgroup",m.rowSpan=c,m.role=
"rowheader",a.append(m)}let d=x("td","td-who");for(let m of y.arms){let g=x("span","arm-"+m.toLowerCase());g.append(x("span","td-arm",m)),d.append(g)}a.append(d);
for(let m of["requested","planned","effective"]){let g=x("td","td-choice",y[m]);g.dataset.title=m,a.append(g)}a.append(x("td","td-status",ao[y.status]||y.status));
let u=x("td","td-proof",y.proof);y.reason&&u.append(x("small","",y.reason)),a.append(u);for(let m of a.querySelectorAll("td"))m.role="cell";return a}function b(){
t="",n=!1,e.replaceChildren()}return{take:o,clear:b}}var Ht={ok:"",note:"Note: ",fallback:"▲ Fallback: ",blocked:"✕ Blocked: "};function Xt(e,t){let n=t.flatMap(r=>[...r.verdicts.filter(s=>s.level!=="ok").map(
s=>({arm:r.name,level:s.level,text:Ht[s.level]+s.reason})),...r.spoilers.map(s=>({arm:r.name,level:"fallback",text:"▲ "+s})),...r.notes.map(s=>({arm:r.name,level:"\
note",text:Ht.note+s}))]),o=JSON.stringify(n);e.dataset.shown!==o&&(e.dataset.shown=o,e.replaceChildren(...n.map(r=>{let s=x("li",r.level+" arm-"+r.arm.toLowerCase());
return s.append(x("span","td-arm",r.arm),document.createTextNode(r.text)),s})))}function qe(e,{of:t,title:n,hint:o,whole:r,numbers:s,lacking:l}){let b="";function y(m){let g=m.map(f=>({name:f.name,step:t(f)})).filter(f=>f.step),h=JSON.stringify(
g);if(h===b)return;b=h,e.hidden=!g.length;let i=g.filter(f=>!f.step.missing),w=Math.max(...i.map(f=>f.step.seconds)),k=x("h3","",n);if(i.some(f=>f.step.parts.some(
v=>v.reads_s!==null))&&k.append(x("span","td-part-hint",o)),e.replaceChildren(k,...i.map(f=>c(f,w))),i.length){let f=x("div","td-part-scroll");f.tabIndex=0,f.setAttribute(
"role","region"),f.setAttribute("aria-label",s),f.append(a(i)),e.append(f)}for(let f of g){let v=x("p","arm-"+f.name.toLowerCase());v.append(x("span","td-arm",f.
name),document.createTextNode(f.step.missing?l+f.step.missing+".":p(f.step.said))),e.append(v)}}function p(m){return m[0].toUpperCase()+m.slice(1)+"."}function c({
name:m,step:g},h){let i=x("div","td-part-bar arm-"+m.toLowerCase()),w=x("div","td-part-track");i.setAttribute("aria-hidden","true");for(let k of g.parts){if(!k.
seconds)continue;let f=x("span","td-part-piece td-part "+k.key);if(f.style.width=100*k.seconds/h+"%",f.title=[k.label+" "+k.text,k.reads].filter(Boolean).join("\
, "),k.reads_s!==null){let v=x("i","td-part-need");v.style.width=Math.min(100,100*k.reads_s/k.seconds)+"%",f.append(v)}w.append(f)}return i.append(x("span","td-\
arm",m),w),i}function a(m){let g=x("table",""),h=x("thead",""),i=x("tbody","");h.append(Me("Part",m));let w=[];for(let v of m){let M=0;for(let L of v.step.parts){
let C=w.findIndex(P=>P.key===L.key);C<0?w.splice(M++,0,L):M=C+1}}for(let{key:v,label:M}of w){let L=x("tr",""),C=x("th","");L.dataset.key=v,C.scope="row",C.append(
x("i","td-part-key td-part "+v),document.createTextNode(M)),L.append(C,...m.map(P=>d(P.step.parts.find(R=>R.key===v)))),i.append(L)}let k=x("tr",""),f=x("th","",
r);return f.scope="row",k.append(f,...m.map(v=>x("td","",v.step.text))),i.append(k),g.append(h,i),g}function d(m){let g=x("td","");return m&&(g.append(x("b","",
m.text),document.createTextNode(m.seconds===null?"":" "+Math.round(100*m.share)+"%")),m.reads&&g.append(x("small","",m.reads))),g}function u(){b="",e.hidden=!0,
e.replaceChildren()}return{take:y,clear:u}}function Wt(e){let t="",n=null;function o(l){let b=JSON.stringify(l.crossing??null);if(b===t)return;if(t=b,n=l.crossing?l:null,e.hidden=!n,!n){e.replaceChildren();
return}let y=x("h3","","When does waiting pay?");y.append(x("span","td-part-hint","seconds since the imports were done, over "+(l.unit==="forward"?"forward pass\
es":"tokens written")));let p=x("div","td-crossing-plot");p.setAttribute("aria-hidden","true"),e.replaceChildren(y,p),r()}function r(){if(!n)return;let{arms:l,crossing:{
starts_s:b,steps_s:y,tokens:p,label:c}}=n,a=e.querySelector(".td-crossing-plot"),d=z("--body-text-color"),u=z("--border-color-primary"),m=2*p,g=(f,v)=>b[f]+v*y[f],
h=Math.max(...l.map((f,v)=>g(v,m))),i=l.map((f,v)=>({type:"scatter",mode:"lines",name:"Arm "+V(f.name),line:{width:2,...ee(f,v)},x:[0,m],y:[g(v,0),g(v,m)]})),w=g(
0,p),k={gridcolor:u,linecolor:u,zeroline:!1,nticks:6,fixedrange:!0};i.push({type:"scatter",mode:"markers",x:[p],y:[w],marker:{size:9,color:z("--body-background-\
fill"),line:{width:2,color:d}},showlegend:!1}),oe().then(()=>Plotly.react(a,i,{paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:d,size:11,
family:z("--font")||"sans-serif"},height:220,margin:{t:24,b:38,l:46,r:8},hovermode:!1,legend:{orientation:"h",x:1,xanchor:"right",y:1,yanchor:"bottom"},xaxis:{...k,
range:[0,m],tickformat:",",title:{text:n.unit==="forward"?"forward passes":"tokens",standoff:4}},yaxis:{...k,range:[0,1.05*h],ticksuffix:" s"},annotations:[{x:p,
y:w,text:"<b>"+V(c)+"</b>",showarrow:!1,yanchor:"top",xanchor:"left",xshift:8,yshift:-6}]},{staticPlot:!0,responsive:!0,showSendToCloud:!1}))}function s(){o({})}
return ve(r),{take:o,clear:s}}var io="Press Run: both arms write your prompt in turn, until it is decided which is faster. Texts, speed, memory and KV cache appear here as they are written, \
with proof that each choice took effect.",Jt=new URLSearchParams(location.search).get("pace"),lo=75,co=60,Vt=_t(T(".td-plot"),T(".td-moments"),T(".td-noted"),settings.
charts),fo={outliers:T(".td-outliers"),axes:T(".td-axis"),whole:T(".td-whole")},uo=Lt(T(".td-plot"),T(".td-fresh"),settings.charts),Q=St(T(".td-plot"),settings.
charts,fo,Vt,uo),Ee=Rt(T(".td-texts")),je=Nt(T(".td-race"),T(".td-scrub"),T(".td-clock"),T(".td-speed"),Ee,(e,t)=>{Q.only(t),Vt.pointAt(e)}),Qt=Ct(T(".td-distri\
bution"),T(".td-spread"),settings.fewest),Yt=()=>S&&[S,j,Q.zoom],xe=It(T(".td-progress")),De=Bt(T(".td-sentence"),T(".td-basis"),T(".td-digest"),T(".td-unasked"),
T(".td-gate"),T(".td-pays")),ze=Ut(T(".td-answer"),settings.links?xo:null),Gt=jt(T(".td-quality")),$t=Ft(T(".td-tiles")),Zt=Dt(T(".td-rows")),en=zt(T(".td-ledge\
r")),tn=qe(T(".td-parts"),{of:e=>e.step,title:"Where the time of a step goes",hint:"the line under a part is the time that its bytes need",whole:"Measured",numbers:"\
Parts of a step as numbers",lacking:"Not traced: "}),nn=qe(T(".td-start"),{of:e=>e.start,title:"From process to first token",whole:"Together",numbers:"Parts of \
a start as numbers"}),on=Wt(T(".td-crossing")),j=[],S=null,H="",He=-1,rn=0,Fe=0,ce=!1,Xe=!1,re=!1,ge=!1,Ce=Et(po,mo,e=>_(T(".td-connection"),e));async function po(){
let e=++rn,t=H,n=j.length?j.map(Oe):[[0,0,0],[0,0,0]];ce&&n.forEach(s=>{s[2]=0});let o=ge&&!ce&&!Xe?co:0,r=JSON.parse(await server.pull({run:t,version:He,cur:n,
wait_ms:o}));return r.seq=e,r}function mo(e){if(e.error)return Ze(H,e.error),"over";if(e.run!==H||re)return re?"over":"wait";if(e.head&&e.seq>Fe&&(Fe=e.seq,ho(e)),
!S)return"wait";$e(e.status,e.queue),tt(e.trouble),Ce.atLeast(e.every_ms);let t=!1,n=!1;return e.lanes.forEach((o,r)=>{if(!j[r])return;ce&&o.cfirst===0&&it(j[r],
o);let s=at(j[r],o);Ee.append(r,s.added),n=n||s.tokens>0||s.samples>0,t=t||o.n-o.first>=settings.most}),Xe=t,n&&(Q.grow(),Qt.follow(Yt)),window.tokendynoProbe&&
window.tokendynoProbe.arrived(j.map(o=>o.t.length)),e.ended?ce?e.lanes.every(o=>o.cfirst===0)?(go(e),"over"):"more":(ce=!0,"more"):t?"more":"wait"}function ho(e){
let t=!S;S=e.head,He=e.version,t&&(j=S.arms.map(rt),Ee.build(S.arms,S.unit),xe.build(S.arms),element.classList.toggle("single",S.arms.length===1),_(T(".td-empty\
-run"),""),ae(!1)),_(T(".td-title"),S.title),_(T(".td-note"),S.note),xe.take(S),De.take(S,e.status),ze.take(S.card),T(".td-verdict").classList.toggle("td-carded",
!!S.card),_(T(".td-sure"),S.card?S.card.confidence:""),settings.links&&window.tokendynoAddress?.title("compare",S.heading),Gt.take(S.quality),element.classList.
toggle("td-reads",!!S.quality),$t.take(S.arms,S.differences),Zt.take(S.arms);let n=S.arms.filter(r=>r.spoilers.length).map(r=>r.name);_(T(".td-interference"),n.
length?"▲ Possible interference ("+n.join(" and ")+")":""),Be(T(".td-annotations"),S.arms,S.unit),en.take(S.arms,S.digest),tn.take(S.arms),nn.take(S.arms),on.
take(S),Xt(T(".td-remarks"),S.arms),nt(e.status,S.message)&&ae(!S.arms.some(r=>r.prompt_tokens)),Q.take(S,j),sn(e.ended)}function sn(e){ge=!e&&(Jt?Jt==="quiet":
S.quiet&&Ge),Q.pace(...ge?[60,1e3,6e3]:[10,300,1e3]),Ce.every(...ge?[lo,!0]:[60,!1])}async function Kt(){let e=H;if(!(re&&!document.hidden&&S.verdict.gate&&!S.verdict.
gate_run))return;let n=JSON.parse(await server.pull({run:e,version:-1,cur:j.map(Oe),anew:!0}).catch(()=>"{}"));!n.head||e!==H||!re||(S.verdict=n.head.verdict,S.
card=n.head.card,De.take(S,n.status),ze.take(S.card))}function go(e){re=!0,sn(!0),xe.tick(j,!0),Ee.finish(j,S.texts),Q.end(),je.ready(S,j),element.dataset.status=
e.status,element.dataset.over=e.run,trigger("finished",{run:e.run,status:e.status}),settings.replays&&!matchMedia("(prefers-reduced-motion: reduce)").matches&&je.
toggle()}function an(e){if(H=e||"",j=[],S=null,He=-1,Fe=rn,ce=!1,Xe=!1,re=!1,et(H,["interference","sure"]),T(".td-verdict").classList.remove("td-carded"),element.
classList.remove("td-reads"),settings.links&&window.dispatchEvent(new Event("tokendyno-run")),settings.links&&window.tokendynoAddress?.title("compare",""),T(".t\
d-texts").replaceChildren(),Be(T(".td-annotations"),[]),je.clear(),xe.clear(),De.clear(),ze.clear(),Gt.clear(),$t.clear(),Zt.clear(),en.clear(),tn.clear(),nn.clear(),
on.clear(),Q.reset(H),_(T(".td-empty-run"),H||!settings.links?"":[io,settings.first].filter(Boolean).join(" ")),H||ae(!0),settings.links&&ot(H),!H){Ce.stop();return}
Ce.begin()}function xo(e){let t=o=>document.querySelector(o);if(e.action==="run"){t("#run")?.click();return}let n="#code-"+e.arm.toLowerCase();t(n)?.scrollIntoView(
{block:"start"}),t(n+" button")?.focus({preventScroll:!0})}function ln(){element.isConnected&&(S&&!re&&!document.hidden&&xe.tick(j),setTimeout(ln,ge?1e3:100))}Qt.
openOn(Yt);T(".td-csv").addEventListener("click",()=>{S&&bt(yt(S,j),"tokendyno-"+H+".csv")});T(".td-png").addEventListener("click",()=>{S&&Q.picture("tokendyno-"+
H)});ve(()=>Q.touch());settings.links&&(window.addEventListener("tokendyno-measured",Kt),document.addEventListener("visibilitychange",Kt));new ResizeObserver(()=>Q.
touch()).observe(element);element.classList.add("td-live");element.live={get series(){return j},get head(){return S}};watch("value",()=>{(props.value||"")!==H&&
an(props.value)});ae(!0);an(props.value);ln();})();
