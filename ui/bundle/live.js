"use strict";(()=>{var Me=e=>{new MutationObserver(()=>e()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};function x(e,t,n){let o=document.createElement(e);return t&&(o.className=t),n!==void 0&&(o.textContent=n),o}function _e(e,t){let n=x("tr","");n.append(x("th","",
e),...t.map(o=>{let r=x("th","arm-"+o.name.toLowerCase());return r.append(x("span","td-arm",o.name)),r}));for(let o of n.querySelectorAll("th"))o.scope="col";return n}
function M(e,t){e.textContent!==t&&(e.textContent=t)}function T(e){return element.querySelector(e)}function z(e){return getComputedStyle(element).getPropertyValue(
e).trim()}function I(e){return e.toLocaleString("en-US")}function $(e){return e>=100?Math.round(e)+" s":e.toFixed(e>=10?1:2)+" s"}function Ze(e){return e>=4*2**
30?{unit:"GiB",scale:1/2**30}:e>=2*2**20?{unit:"MiB",scale:1/2**20}:{unit:"KiB",scale:1/1024}}var Ln={queued:"Queued",running:"Running",done:"Done",failed:"Failed",cancelled:"Stopped",interrupted:"Interrupted"},et=/^(localhost|127(\.\d+){3}|\[::1\])$/.test(
location.hostname);function tt(e,t){M(T(".td-status"),Ln[e]||e),e==="queued"&&t&&M(T(".td-message"),t),element.dataset.status=e}function ae(e){element.classList.
toggle("td-bare",e)}function nt(e,t){for(let n of["status","empty-run"])M(T(".td-"+n),"");M(T(".td-failure"),t),ae(!0),trigger("finished",{run:e,status:"unknown"})}
function ot(e,t){for(let n of["status","over"])delete element.dataset[n];element.dataset.run=e;for(let n of["status","title","note","failure","message","connect\
ion","unkept",...t])M(T(".td-"+n),"");T(".td-remarks").replaceChildren(),delete T(".td-remarks").dataset.shown}function rt(e){M(T(".td-unkept"),e?"▲ "+e:"")}function st(e,t){
let n=e==="failed"||e==="interrupted";return M(T(".td-failure"),n?t||"The run ended unexpectedly.":""),M(T(".td-message"),n?"":t),n}function Te(e){return T(e)}function at(e){
if(T(".td-link").hidden=T(".td-files").hidden=!e,!e)return;let t=new URL(location.href);t.search="?"+new URLSearchParams({run:e}),t.hash="",Te(".td-permalink").
href=t.href,M(T(".td-permalink"),t.search),Te(".td-kept").href="?"+new URLSearchParams({view:"history",q:e}),T(".td-kept").hidden=e.startsWith("recorded-");for(let r of[
"dyno","html","json"])Te(".td-file-"+r).href="files/"+encodeURIComponent(e)+"."+r;T(".td-file-html").hidden=!T(".td-plot");let n=new URL(location.href),o=n.searchParams.
get("view")||window.tokendynoAddress?.page;if(o&&o!=="compare"&&o!=="batching"){window.tokendynoAddress?.note(element.closest("#batch-live")?"batching":"compare",
e);return}n.searchParams.set("run",e);for(let r of["worth","sweep"])n.searchParams.delete(r);n.href!==location.href&&history.replaceState(history.state,"",n.href)}
async function Sn(){let{href:e}=Te(".td-permalink");try{await navigator.clipboard.writeText(e),M(T(".td-copied"),"Copied")}catch{window.prompt("Copy this link:",
e)}setTimeout(()=>M(T(".td-copied"),""),2e3)}T(".td-copy").addEventListener("click",Sn);var Le=["t","lat","kvs","kvf"];function it(){return{t:[],lat:[],kvs:[],kvf:[],st:[],sm:[],text:"",chars:0}}function Pe(e){return[e.t.length,e.st.length,e.chars]}
function lt(e){return Object.fromEntries([...Le,"st","sm"].map(t=>[t,e[t].length]))}function ct(e,t){let n={tokens:0,samples:0,added:""},o=e.t.length;if(t.first<=
o&&t.n>o){for(let s of Le){let l=e[s],k=t[s];for(let y=o-t.first;y<k.length;y++)l.push(k[y])}n.tokens=t.n-o}let r=e.st.length;if(t.sfirst<=r&&t.sn>r){for(let s=r-
t.sfirst;s<t.st.length;s++)e.st.push(t.st[s]),e.sm.push(t.sm[s]);n.samples=t.sn-r}if(t.cfirst<=e.chars&&t.cn>e.chars){let s=e.chars-t.cfirst;n.added=s?Array.from(
t.text).slice(s).join(""):t.text,e.text+=n.added,e.chars=t.cn}return n}function ft(e,t){e.text=t.text,e.chars=t.cn}function dt(e,t){let n=Math.min(e.length,t.length);
for(let o=0;o<n;o++)if(e.charCodeAt(o)!==t.charCodeAt(o))return o;return-1}function q(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<t?n=r+1:o=r}return n}function ut(e,t,n,o){let r=Math.max(0,n-t);if(r<=o)return Array.from({length:r},
(l,k)=>t+k);let s=2;for(;s*(o/2-2)<r;)s*=2;for(;;){let l=An(e,t,n,s);if(l.length<=o)return l;s*=2}}function An(e,t,n,o){let r=[t];for(let s=t-t%o;s<n;s+=o){let l=Math.
max(s,t),k=Math.min(s+o,n),y=[];for(let p of e){let c=Math.min(k,p.length);if(l>=c)continue;let i=l,f=l;for(let u=l+1;u<c;u++)p[u]<p[i]?i=u:p[u]>p[f]&&(f=u);y.push(
i,f)}y.sort((p,c)=>p-c);for(let p of y)p>r[r.length-1]&&r.push(p)}return r[r.length-1]!==n-1&&r.push(n-1),r}function Z(e,t,n){return e.at==="sample"?t==="second"?o=>n.st[o]:o=>le(n.t,n.st[o]):t==="second"?o=>n.t[o]:o=>o}function Se(e,t,n,[o,r]){if(e.at==="sample"){let[
s,l]=t==="second"?[o,r]:[ie(n.t,o),ie(n.t,r)];return[q(n.st,s),q(n.st,l)]}return t==="second"?[q(n.t,o),q(n.t,r)]:[Math.floor(o),Math.ceil(r)]}function Ne([e,t],n,o){
let r=o.filter(l=>l.t.length);if(!r.length)return null;let s=r.map(({t:l})=>n==="second"?[ie(l,e),ie(l,t)]:[le(l,e),le(l,t)]);return[Math.min(...s.map(l=>l[0])),
Math.max(...s.map(l=>l[1]))]}function pt(e,{t},n){return!t.length||n>t[t.length-1]?null:e==="second"?n:n<t[0]?null:q(t,n)}function ie(e,t){if(!e.length)return 0;
let n=e.length-1,o=Math.min(n,Math.max(0,t)),r=Math.floor(o);return r===n?e[n]:e[r]+(o-r)*(e[r+1]-e[r])}function le(e,t){let n=q(e,t);return n===0?0:n>=e.length?
e.length-1:n-1+(t-e[n-1])/(e[n]-e[n-1])}var Cn=.98,En=2,On=1.5,Pn=20;function Ae(e,t){let n=Float64Array.from(e.flatMap(s=>s.slice(t))).sort();if(n.length<Pn)return null;
let o=n[Math.floor(Cn*(n.length-1))];return n[n.length-1]>En*o?On*o:null}var mt=[{color:"#4269d0",dash:"solid"},{color:"#ff725c",dash:"5px,2.5px"},{color:"#3ca951",dash:"10px,3px"},{color:"#a463f2",dash:"9px,3px,2px,3px"},{color:"#9c\
6b4e",dash:"4px,2px,1px,2px,1px,2px"}];function ee(e,t){return mt[(e.line??t)%mt.length]}var ht="1px,3px",Nn=400;function gt(e,t){return e.flatMap((n,o)=>{let r={
xaxis:"x"+U(o),yaxis:"y"+U(o),type:"scatter",mode:"lines"};if(!t.head)return[{...r,x:[0,1],y:[0,1],line:{width:0},hoverinfo:"skip",showlegend:!1}];let s=t.part?
{...t,series:t.part}:t,l=me(n,t),k=In(n,o,r,l,s);return n.annotations&&k.push(...yt(n,r,s)),t.tops&&t.tops[o]!==null&&k.push(...qn(n,o,r,s)),k.push(Fn(n,o,r,t)),
k.concat(Dn(n,o,r,l,t))})}function U(e){return e?e+1:""}function V(e){return e.replace(/[<>&]/g,"")}function W(e,t){return t.unit==="forward"?0:e.first}function J(e){
return e.lines.filter(t=>!t.curve)}function Re(e,t,{head:n,series:o,axis:r,zoom:s}){let l=W(e[0],n),k=t.flatMap(c=>e.map(i=>o[c][i.column])),y=l,p=Math.max(0,...k.
map(c=>c.length));if(s){let[c,i]=Se(e[0],r,o[t[0]],s);y=Math.max(y,c-1),p=Math.min(p,i+2)}return ut(k,y,p,Nn)}function Ie(e,t,{head:n,series:o}){return e.curve?
n.arms[t][e.curve]:o[t]}function xt(e,t){let n=0;for(let o of e.lines)t.series.forEach((r,s)=>{let l=Ie(o,s,t);if(l)for(let k of l[o.column])k>n&&(n=k)});return n}
function Rn(e,{series:t}){let n=1/0;for(let o of J(e))for(let r of t)for(let s of r[o.column])s<n&&(n=s);return n<1/0?n:0}function wt(e,t,n){return e.unit!=="by\
tes"?{unit:e.unit,scale:1}:n||Ze(xt(e,t))}function me(e,t){let n=o=>t.series.some((r,s)=>{let l=Ie(o,s,t),k=l&&l[o.column];return k&&k.length&&k[k.length-1]>0});
return[...new Set(e.lines.filter(o=>o.kind&&n(o)).map(o=>o.kind))]}function In(e,t,n,o,r){let{head:s,series:l,hidden:k,axis:y,ended:p}=r,{scale:c}=r.units[t],i=[],
f=J(e),u=l.map((a,w)=>w),h=f[0].at==="token"&&y==="token"?u.map(()=>Re(f,u,r)):u.map(a=>Re(f,[a],r)),g=(a,w,b,d)=>{let v=s.arms[w].name,_=ee(s.arms[w],w);i.push(
{...n,x:b,y:d,name:V([v,a.kind,a.label].filter(Boolean).join(" ")),showlegend:!1,hoverinfo:"skip",visible:![v,a.kind,a.label].some(L=>L&&k.has(L)),meta:{chart:e.
key,arm:v,kind:a.kind,curve:a.curve},line:{width:a.width,color:_.color,dash:a.curve?ht:_.dash},opacity:a.curve?.9:1})};for(let a of e.lines)for(let w of u){if(a.
kind&&!o.includes(a.kind))continue;let b=Ie(a,w,r),d=a.scale*c;if(!b)continue;let v=b[a.column];if(a.curve&&a.at==="sample"){let L=y==="second"?b.x:b.x.map(C=>C===
null?null:le(l[w].t,C));g(a,w,L,v.map(C=>C===null?null:C*d));continue}if(a.curve){let L=Be(a,s.arms[w]),{t:C}=l[w];if(y==="token"){let R=p?Math.max(...l.map(D=>D.
t.length))-1+L:1/0,X=Un(b.x,R);g(a,w,X.map(D=>D-L),X.map(D=>pe(b.x,v,D)*d));continue}let P=Re(Bn,[w],r).filter(R=>R+L>=b.x[0]);g(a,w,P.map(R=>C[R]),P.map(R=>pe(
b.x,v,R+L)*d));continue}let _=h[w].filter(L=>L<v.length);g(a,w,_.map(Z(a,y,b)),_.map(L=>v[L]*d))}return i}var Bn=[{at:"token",column:"lat",first:0,scale:1,kind:"",
width:1,curve:"",label:""}];function Be(e,t){return e.at==="length"?t.prompt_tokens:0}function Un(e,t){let n=e.filter(o=>o<=t);return n.length&&n.length<e.length&&
n[n.length-1]<t?[...n,t]:n}function pe(e,t,n){let o=q(e,n);return o===0||o>=e.length?t[o?e.length-1:0]:t[o-1]+(t[o]-t[o-1])*(n-e[o-1])/(e[o]-e[o-1])}function qn(e,t,n,o){
let{head:r,series:s,hidden:l,axis:k,tops:y}=o,{unit:p,scale:c}=o.units[t],[i]=J(e);return r.arms.map((f,u)=>{let m=s[u][i.column],h=i.scale*c,g=[];for(let a=W(i,
r);a<m.length;a++)m[a]*h>y[t]&&g.push(a);return{...n,mode:"markers",x:g.map(Z(i,k,s[u])),y:g.map(()=>.985*y[t]),showlegend:!1,visible:!l.has(f.name),cliponaxis:!1,
marker:{symbol:"triangle-up"+(u%2?"-open":""),size:7,color:ee(r.arms[u],u).color},hoverinfo:"skip",text:g.map(a=>(m[a]*h).toPrecision(3)+" "+p),meta:{chart:e.key,
outliers:f.name}}})}function kt(e,t,{head:n,series:o,ended:r,axis:s,zoom:l,units:k},y){let p=e.lines.find(b=>b.curve==="floor"),c=n.arms.map((b,d)=>[b,o[d]]),i=p?
c.filter(([{floor:b}])=>b&&b[p.column].length):[];if(!i.length)return[];let{unit:f,scale:u}=k[t],m=i.map(([{floor:b},{t:d}])=>{let v=l?l[1]:r&&s==="token"?Math.
max(...o.map(L=>L.t.length))-1:1/0,_=s==="second"?le(d,v):v;return pe(b.x,b[p.column],_)*p.scale*u}),h=m.map(b=>Number(b.toPrecision(3))),a=Math.max(...m)<1.1*Math.
min(...m)?h[0]:i.map(([b],d)=>V(b.name)+" "+h[d]).join(", "),w=i.filter(([{floor:b}])=>b.exchanges).map(([{name:b,floor:d}])=>", exchanges of "+V(b)+" "+d.exchanges).
join("");return[{text:"roofline bound "+a+" "+f+w,showarrow:!1,xref:"x"+U(t)+" domain",yref:"y"+U(t),x:1,y:Math.max(...m),xanchor:"right",yanchor:"bottom",font:{
size:10,color:y}}]}var jn=.25;function Fn(e,t,n,o){let{head:r,series:s,ended:l,axis:k}=o,{scale:y}=o.units[t],p=[0,Math.max(1,l?Math.max(...s.map(h=>h.t.length)):
r.max_new_tokens)];if(k==="second"){let h=Math.max(0,...s.flatMap(({t:a,st:w})=>[a,w].filter(b=>b.length).map(b=>b[b.length-1]))),g=10**Math.floor(Math.log10(Math.
max(1,h)));p=[0,l?h:Math.ceil((h+g/10)/g)*g]}let c=e.unit==="bytes"?xt(e,o)*y:0,i=e.min_span*c,f=e.from_zero?0:Rn(e,o)*y,u=l?c:c+jn*(c-f),m=[f-i/4,Math.max(u,f+
3*i/4)];return{...n,x:p,y:m,line:{width:0},hoverinfo:"skip",showlegend:!1,meta:{chart:e.key,extent:!0}}}function Dn(e,t,n,o,{head:r,hidden:s,neutral:l}){let k=(i,f,u)=>({
...n,x:[null],y:[null],name:V(i),line:f,legend:u,showlegend:!0,hoverinfo:"skip",visible:s.has(i)?"legendonly":!0,meta:{legend:i}}),y="legend"+U(t),p=t?[]:r.arms.
map((i,f)=>k(i.name,{width:2,...ee(r.arms[f],f)},y));for(let i of o){let{width:f}=J(e).find(u=>u.kind===i);p.push(k(i,{width:f,color:l},y))}let c=i=>i.curve&&(!i.
kind||o.includes(i.kind))&&r.arms.some(f=>f[i.curve]);for(let i of new Set(e.lines.filter(c).map(f=>f.label)))p.push(k(i,{width:1.2,color:l,dash:ht},y));return p}var vt={compile:["diamond","◆"],recompile:["diamond","◆"],graph_skip:["x","✕"],window:["triangle-down","▼"],cache:["square","■"],gc:["circle","●"],throttle:[
"star","★"],foreign:["cross","✚"]},bt=3;function yt(e,t,{head:n,series:o,hidden:r,axis:s,ink:l}){let k=J(e)[0],y=W(k,n),p=[];return n.arms.forEach((c,i)=>{let f=o[i][k.
column],u=new Map(c.marks.filter(({token:g})=>g>=y&&g<f.length).reverse().map(g=>[g.token,g.kind]));if(!u.size)return;let m=[...u.keys()].sort((g,a)=>g-a),h=m.map(
g=>vt[u.get(g)][0]);p.push({...t,mode:"markers",x:m.map(Z(k,s,o[i])),y:m.map(g=>f[g]*k.scale),marker:{symbol:h.map(g=>g+(i%2?"-open":"")),size:9,color:l,line:{width:1.2,
color:l}},hoverinfo:"skip",showlegend:!1,visible:!r.has(c.name),meta:{chart:e.key,annotations:c.name}})}),p}function Ue(e,t,n){let o=JSON.stringify(t.map(s=>s.marks));
if(e.dataset.shown===o)return;e.dataset.shown=o;let r=s=>(n==="forward"?"pass ":"token ")+I(s.token)+": "+s.text;e.title=t.flatMap(s=>s.marks.map(l=>s.name+" "+
r(l))).join(`
`),e.replaceChildren(...t.filter(s=>s.marks.length).map(s=>{let l=x("span","td-annotation arm-"+s.name.toLowerCase());l.append(x("span","td-arm",s.name));let k=s.
marks.slice(0,bt).map(p=>vt[p.kind][1]+" "+r(p)),y=s.marks.length-bt;return l.append(document.createTextNode(k.join(", ")+(y>0?" and "+I(y)+" more":""))),l}))}var zn=["arm","series","index","seconds","latency_s","kv_sliding_bytes","kv_full_bytes","memory_bytes"];function Mt(e,t){let n=[zn.join(",")],o=e.unit==="forwar\
d"?"pass":"token";return e.arms.forEach(({name:r},s)=>{let{t:l,lat:k,kvs:y,kvf:p,st:c,sm:i}=t[s];l.forEach((f,u)=>n.push([r,o,u,f,k[u],y[u],p[u],""].join(","))),
c.forEach((f,u)=>n.push([r,"sample",u,f,"","","",i[u]].join(",")))}),n.join(`
`)+`
`}function _t(e,t){let n=document.createElement("a");n.href=URL.createObjectURL(new Blob([e],{type:"text/csv"})),n.download=t,n.click(),setTimeout(()=>URL.revokeObjectURL(
n.href),1e4)}function Hn(e,t,n,o){let{t:r,st:s}=n;if(e.at==="sample"){let k=t.second??(t.token<r.length?ie(r,t.token):1/0),y=q(s,k);return!s.length||k>Math.max(s[s.length-1],
r.length?r[r.length-1]:0)?null:y>0&&(y>=s.length||k-s[y-1]<s[y]-k)?y-1:y}let l=t.token??q(r,t.second);return l>=o&&l<r.length?l:null}function te(e){return e.toLocaleString(
"en-US",{maximumSignificantDigits:4})}function Xn({x:e},t,n){let o=[],r=null;return e.forEach((s,l)=>{s===null?(o.push(t[r]),r=null):(r===null||Math.abs(s-n)<Math.
abs(e[r]-n))&&(r=l)}),o}function Tt(e,t,n,o){let{head:r,series:s,hidden:l}=o,{unit:k,scale:y}=o.units[t],p=me(e,o),c=m=>!m.kind||p.includes(m.kind),[i]=e.lines.
filter(m=>!m.curve),f=J(e).filter(c),u=e.lines.filter(m=>m.curve&&m.at!=="sample"&&c(m));return r.arms.flatMap((m,h)=>{let g=Hn(i,n,s[h],W(i,r));if(g===null||l.
has(m.name)||!f.length)return[];let a=f.map(d=>s[h][d.column][g]*d.scale*y),w=[a.map((d,v)=>te(d)+(f.length>1?" "+f[v].kind:"")).join(" + ")+" "+k],b=u.filter(d=>m[d.
curve]);if(b.length){let d=b.reduce((_,L)=>_+pe(m[L.curve].x,m[L.curve][L.column],g+Be(L,m))*L.scale*y,0),v=Math.abs(d-a.reduce((_,L)=>_+L,0))<5e-4*d;w.push(b[0].
curve==="floor"?"roofline bound "+te(d):v?"as predicted":"predicted "+te(d))}for(let d of e.lines.filter(v=>v.curve&&v.at==="sample"&&m[v.curve])){let v=Xn(m[d.
curve],m[d.curve][d.column],s[h].st[g]);w.push(d.label+" "+v.map(_=>te(_*d.scale*y)).join(", "))}return i.at==="token"&&n.token===void 0&&w.push(Ce(r)+" "+I(g)),
e.lines.some(d=>d.at==="length")&&w.push(I(m.prompt_tokens+g)+" tokens cached"),[{arm:m.name,text:w.join(", ")}]})}function Ce(e){return e.unit==="forward"?"pas\
s":"token"}function Lt(e,t,n,o,{head:r,series:s,hidden:l,axis:k,units:y,tops:p}){let[c]=J(e),i=W(c,r),f=p[t]===null?1/0:p[t]/c.scale/y[t].scale,u=null,m=o;return e.
annotations&&r.arms.forEach((h,g)=>{if(l.has(h.name))return;let a=s[g][c.column],w=new Set(h.marks.map(_=>_.token)),b=Z(c,k,s[g]),[d,v]=Se(c,k,s[g],[n-o,n+o]);for(let _=Math.
max(i,d);_<=Math.min(v,a.length-1);_++){let L=Math.abs(b(_)-n);L<=m&&(w.has(_)||a[_]>f)&&(m=L,u=b(_))}}),k==="second"?{second:Math.max(0,u??n)}:{token:u??Math.max(
0,Math.round(n))}}function St(e,{head:t,series:n,hidden:o}){return t.arms.flatMap((r,s)=>{let l=e.token??q(n[s].t,e.second);return o.has(r.name)?[]:r.marks.filter(
k=>k.token===l&&l<n[s].t.length).map(k=>r.name+" "+Ce(t)+" "+I(l)+": "+k.text)})}var Wn=5;function At(e,t,n,o){let r=null,s=null,l=null,k=h=>[e._fullLayout["xaxis"+U(h)],e._fullLayout["yaxis"+U(h)]];function y(h){let g=e.getBoundingClientRect(),
a=h.clientX-g.left,w=h.clientY-g.top;for(let b=0;b<o.length;b++){let[d,v]=k(b);if(a<d._offset||a>d._offset+d._length||w<v._offset||w>v._offset+v._length)continue;
let _=a-d._offset;return{i:b,x:d.p2l(_),reach:Math.abs(d.p2l(_+Wn)-d.p2l(_))}}return null}function p(h){let g=l&&l.head&&e._fullLayout?y(h):null;r=g&&Lt(o[g.i],
g.i,g.x,g.reach,l),m()}function c(){r&&(r=null,m())}function i(h,g,a){let[w,b]=k(h);if(g===null||g<w.range[0]||g>w.range[1])return[];let d=x("i","td-moment "+a);
return Object.assign(d.style,{left:w._offset+w.l2p(g)+"px",top:b._offset+"px",height:b._length+"px"}),[d]}function f(h,g,a){let[w,b]=k(h),d=x("span","td-place",
a),v=Math.min(w._length,Math.max(0,w.l2p(g)));return Object.assign(d.style,{left:w._offset+v+"px",top:b._offset+b._length+1+"px",transform:"translateX(-"+100*v/
w._length+"%)"}),d}function u(h,g){let a=Tt(o[h],h,g,l),[w,b]=k(h);if(!a.length)return[];let d=x("div","td-readout");Object.assign(d.style,{left:w._offset-4+"px",
width:w._length+8+"px",bottom:"calc(100% - "+b._offset+"px)"}),l.titles[h]&&d.append(x("strong","",l.titles[h]));for(let{arm:v,text:_}of a){let L=x("span","arm-"+
v.toLowerCase());L.append(x("b","td-arm",v),document.createTextNode(_)),d.append(L)}return[d]}function m(){let h=r||(s===null?null:{second:s}),g=[],a=h&&l&&l.head&&
e._fullLayout&&e._fullLayout.xaxis;a&&o.forEach((b,d)=>{if(!l.series.some(_=>_.t.length||_.st.length))return;let v=r?r.token??r.second:l.axis==="second"?s:null;
r?g.push(...i(d,v,"")):l.series.forEach((_,L)=>g.push(...i(d,pt(l.axis,_,s),"arm-"+l.head.arms[L].name.toLowerCase()))),v!==null&&g.push(f(d,v,l.axis==="second"?
$(v):Ce(l.head)+" "+I(v))),g.push(...u(d,h))}),t.replaceChildren(...g);let w=a?St(h,l):[];n.hidden=!w.length,n.replaceChildren(...w.map(b=>x("span","",b)))}return e.
addEventListener("pointermove",p),e.addEventListener("pointerdown",h=>h.pointerType==="touch"?p(h):c()),e.addEventListener("pointerleave",c),{take(h){l=h,(r||s!==
null)&&m()},pointAt(h){s=h,m()},clear(){r=null,s=null,l=null,m()}}}function Ct(e,t,n){let o=null,r=[];function s(){o=null,r=[],t.replaceChildren()}function l(i,f){s(),i.head&&(o=i,r=n.map((u,m)=>y(u,m,f)),p())}function k(i){return o&&
(o={...o,series:i}),p()}function y(i,f,u){let m=e._fullLayout["xaxis"+U(f)],h=e._fullLayout["yaxis"+U(f)],g=window.devicePixelRatio,a=x("canvas",""),w=a.getContext(
"2d"),b=me(i,o);a.width=Math.ceil(m._length*g),a.height=Math.ceil(h._length*g),Object.assign(a.style,{left:m._offset+"px",top:h._offset+"px",width:m._length+"px",
height:h._length+"px"}),w.scale(g,g),t.append(a);let d=J(i).filter(v=>!v.kind||b.includes(v.kind)).flatMap(v=>o.series.map((_,L)=>({line:v,a:L,next:Math.max(W(v,
o.head),u[L][v.column]-1),drawnPx:0,shown:![o.head.arms[L].name,v.kind].some(C=>C&&o.hidden.has(C))})));return{x:m,y:h,pen:w,lines:d,scale:o.units[f].scale}}function p(){
return o?r.map(c).some(Boolean):!1}function c({x:i,y:f,pen:u,lines:m,scale:h}){let g=!1;for(let a of m){let{line:w,a:b}=a,d=o.series[b][w.column],v=d.length;if(!a.
shown||v-a.next<2)continue;let _=Z(w,o.axis,o.series[b]),L=ee(o.head.arms[b],b),C=i.l2p(_(a.next)),P=f.l2p(d[a.next]*w.scale*h),R=a.drawnPx;u.beginPath(),u.moveTo(
C,P);for(let X=a.next+1;X<v;X++){let D=i.l2p(_(X)),F=f.l2p(d[X]*w.scale*h);u.lineTo(D,F),R+=Math.hypot(D-C,F-P),C=D,P=F,g=g||i.autorange&&C>i._length||f.autorange&&
(P<0||P>f._length)}u.strokeStyle=L.color,u.lineWidth=w.width,u.setLineDash(L.dash==="solid"?[]:L.dash.split(",").map(parseFloat)),u.lineDashOffset=a.drawnPx,u.stroke(),
a.next=v-1,a.drawnPx=R}return g}return{take:l,follow:k,draw:p,clear:s}}function re(){return window.Plotly?Promise.resolve():window.tokendynoPlotly??=new Promise(e=>{let t=()=>{let n=document.createElement("script");n.src=settings.plotly,
n.addEventListener("load",()=>e()),n.addEventListener("error",()=>{n.remove(),setTimeout(t,1e3)}),document.head.append(n)};t()})}var Jn=760,Kn=250,Vn=420,Gn=40,Qn=()=>Math.round(Math.min(420,Math.max(200,.26*window.innerHeight))),Yn={responsive:!0,displaylogo:!1,showTips:!1,showSendToCloud:!1,
displayModeBar:!1};function Et(e,t,n,o,r){let s="",l=null,k=[],y=null,p=[],c=[],i=[],f=new Set,u=!1,m=0,h="token",g=null,a=0,w=!1,b=!1,d=!1,v=!1,_=!0,L=!1,C=0,P=0,
R=10,X=300,D=1e3,F=[],Ve=[];function mn(A){A&&Mn(),s=A,l=null,k=[],y=null,p=[],f=new Set,u=!1,_=!0,g=null,w=!1,o.clear(),r.clear()}function hn(A){t.forEach((O,N)=>{
let E="xaxis"+U(N),B=A[E+".range"]||[A[E+".range[0]"],A[E+".range[1]"]];A[E+".autorange"]?g=null:l&&B[0]!==void 0&&(g=B.map(Number))}),fe()}function fe(){_=!0,se(
!0)}function gn(A){A!==h&&(h=A,g=g&&Ne(g,h,k),fe())}function xn(A,O){if(!l||w||A.unit!=="ms")return null;let[N]=J(A),E=Ae(k.map(B=>B[N.column]),W(N,l));return E===
null?null:E*N.scale*p[O].scale}function wn(A,O){if(!l||!y||A.unit!=="ms")return null;let[N]=J(A),E=W(N,l),B=k.reduce((ne,ke)=>ke[N.column].slice(E).reduce((Q,Y)=>Math.
max(Q,Y),ne),0);return B?1.05*B*N.scale*p[O].scale:null}function kn(){let A={head:l,series:k,part:y,ended:u,hidden:f,axis:h,zoom:g,units:p,ink:z("--body-text-co\
lor"),neutral:z("--body-text-color-subdued")};p=t.map((E,B)=>l?wt(E,A,g&&p[B]):null),c=t.map(xn),n.outliers.hidden=!w&&c.every(E=>E===null),n.outliers.setAttribute(
"aria-pressed",String(w)),M(n.outliers,w?"Cut outliers off":"Show outliers in full"),n.whole.hidden=g===null;for(let E of n.axes.querySelectorAll("button"))E.setAttribute(
"aria-pressed",String(E.dataset.axis===h));M(n.axes.firstElementChild,l&&l.unit==="forward"?"Passes":"Tokens");let O=gt(t,{...A,units:p,tops:c}),N=O.filter(E=>!E.
meta?.extent&&E.y.some(Number.isFinite)).map(E=>E.yaxis);return i=t.map((E,B)=>!y&&!N.includes("y"+U(B))),O}function yn(){let A=element.clientWidth<Jn,O=t.length,
N=A?.13:.05,E=(1-N*(O-1))/O,B=element.clientWidth*(A?1:E)<Vn,ne=z("--body-text-color"),ke=z("--border-color-primary"),Q={uirevision:s+"/"+a,datarevision:++m,paper_bgcolor:"\
rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:ne,size:11,family:z("--font")||"sans-serif"},height:A?Kn*O:Qn(),margin:{t:B?56:36,b:34,l:44,r:8,autoexpand:!1},
hovermode:!1,dragmode:"zoom",annotations:[]};return t.forEach((Y,K)=>{let ye=K*(E+N),de=A?[0,1]:[ye,ye+E],ue=A?[1-ye-E,1-ye]:[0,1],Qe=Y.unit==="bytes"?p[K]&&p[K].
unit:Y.unit,be=l&&l.unit==="forward"&&Y.encoder||Y,ve=V(be.title||(l?l.memory_label:"memory")).slice(0,Gn),Ye=c[K]??wn(Y,K);Ve[K]=B?"":ve[0].toUpperCase()+ve.slice(
1);let $e={gridcolor:ke,zeroline:!1,linecolor:ke,ticks:"",automargin:!1,showticklabels:!!l&&!be.note};Q["xaxis"+U(K)]={...$e,domain:de,anchor:"y"+U(K),uirevision:[
s,a,h].join("/"),...g?{range:[...g],autorange:!1}:{},title:{text:h==="second"?"seconds":l&&l.unit==="forward"?"forward pass":"token",standoff:2},nticks:6},Q["ya\
xis"+U(K)]={...$e,domain:ue,anchor:"x"+U(K),rangemode:Y.from_zero?"tozero":"normal",nticks:6,tickformat:",~r",...Ye===null?{}:{range:[0,Ye],autorange:!1},...i[K]?
{showticklabels:!1}:{}},l&&Q.annotations.push(...kt(Y,K,{head:l,series:k,ended:u,axis:h,zoom:g,units:p},ne)),Q.annotations.push({text:"<b>"+ve[0].toUpperCase()+
ve.slice(1)+"</b>"+(Qe?", "+Qe:""),showarrow:!1,xref:"paper",yref:"paper",x:de[0],y:ue[1],xanchor:"left",yanchor:"bottom",yshift:B?32:4,xshift:-4,font:{size:12}}),
be.note&&Q.annotations.push({text:V(be.note),showarrow:!1,xanchor:"center",xref:"paper",yref:"paper",x:(de[0]+de[1])/2,y:(ue[0]+ue[1])/2});let Tn={orientation:"\
h",x:de[B?0:1],y:ue[1],xanchor:B?"left":"right",yanchor:"bottom",bgcolor:"rgba(0,0,0,0)",font:{size:11},itemwidth:30};Q["legend"+U(K)]=Tn}),Q}async function se(A){
if(!d||!_||L||document.hidden||!A&&performance.now()<C||!element.offsetParent)return;_=!1;let O=performance.now(),N=y||k,E=N.map(lt),B=kn(),ne={head:l,series:k,
hidden:f,axis:h,units:p,tops:c,titles:Ve};L=!0;try{await Plotly.react(e,B,yn(),Yn)}finally{L=!1}_n(),ne.series===k&&(o.take(ne),r.take({...ne,series:N},E)),requestAnimationFrame(
()=>setTimeout(()=>{F.push(performance.now()-O),F.length>5&&F.shift(),P=performance.now()+X,C=performance.now()+Math.max(X,Math.min(D,Math.min(...F)*R)),window.
tokendynoProbe&&window.tokendynoProbe.painted(F[F.length-1])},0)),Ge()}function bn(){_=!0,r.draw()&&(C=Math.min(C,P)),Ge()}function Ge(){if(!window.tokendynoProbe||
L||!l)return;let A=k.map(O=>O.t.length);requestAnimationFrame(()=>setTimeout(()=>window.tokendynoProbe.shows(A),0))}function vn(A){let O=A.data[A.curveNumber].meta.
legend;return f.delete(O)||f.add(O),fe(),!1}async function Mn(){b||(b=!0,await re(),d=!0,setInterval(()=>{element.isConnected&&se(!1)},33),se(!0))}function _n(){
if(!v){v=!0,e.on("plotly_relayout",hn),e.on("plotly_legendclick",vn),e.on("plotly_legenddoubleclick",()=>!1),n.outliers.addEventListener("click",()=>{w=!w,fe()});
for(let A of n.axes.querySelectorAll("button"))A.addEventListener("click",()=>gn(A.dataset.axis));n.whole.addEventListener("click",()=>{g=null,a++,fe()})}}return{
reset:mn,take(A,O){l=A,k=O,_=!0},end(){u=!0,_=!0,se(!0)},async picture(A){return await re(),Plotly.downloadImage(e,{format:"png",filename:A,scale:2,width:e.clientWidth,
height:e.clientHeight})},get zoom(){return g&&(h==="token"?g:Ne(g,"token",k))},grow:bn,only(A){if(y===A)return;let O=y&&A&&A.every((N,E)=>N.t.length>=y[E].t.length);
y=A,_=!0,O&&r.follow(A)&&(C=Math.min(C,P)),se(!O)},touch(){_=!0,se(!1)},pace(A,O,N){R=A,X=O,D=N}}}var $n=10,Zn=60,qe=200,Ot=[["Shortest",0],["10%",.1],["Median",.5],["90%",.9],["99%",.99],["Longest",1]];function he(e,t){return e[Math.max(0,Math.ceil(Number((t*
e.length).toFixed(9)))-1)]}function eo(e,t,n){let o=W({first:1},e);return t.map(({lat:r})=>Float64Array.from(r.slice(Math.max(o,n?Math.ceil(n[0]):0),n?Math.floor(
n[1])+1:r.length)).sort())}function to(e){let t=e.filter(p=>p.length),n=Math.min(...t.map(p=>p[0])),o=Ae(t.map(p=>[...p]),0)??Math.max(...t.map(p=>p[p.length-1])),
r=t.map(p=>2*(he(p,.75)-he(p,.25))/Math.cbrt(p.length)).filter(p=>p>0),s=Math.round(Math.min(Zn,Math.max($n,r.length?(o-n)/Math.min(...r):0))),l=o>n?(o-n)/s:Math.
max(1e-9,.01*n),k=Array.from({length:s+1},(p,c)=>n+c*l),y=e.map(()=>new Array(s).fill(0));return e.forEach((p,c)=>{for(let i of p)i<=o&&y[c][Math.min(s-1,Math.floor(
(i-n)/l))]++}),{edges:k,shares:y.map((p,c)=>p.map(i=>i/Math.max(1,e[c].length))),beyond:e.map(p=>p.length-q(p,o*(1+1e-12)))}}function no(e,t){let n=[];for(let o=0;o<=
qe&&e.length;o++){let r=he(e,o/qe);r<=t*(1+1e-12)&&n.push([r,o/qe])}return n}function Pt(e,t,n){let o=c=>t.querySelector(c),r=o(".td-spread-plot");function s(c,i,f){
let u=eo(c,i,f),m=c.unit==="forward"?"passes":"tokens",h=f?m+" "+I(Math.ceil(Math.max(0,f[0])))+" to "+I(Math.floor(f[1]))+", as zoomed":c.unit==="forward"?"all\
 passes":"all tokens after the first";if(M(o(".td-spread-what"),"The first run of each arm: "+h+"."),!u.some(w=>w.length)){l();return}let g=to(u),a=g.edges[g.edges.
length-1];M(o(".td-spread-said"),k(c,u,g,a,m)),o("table").replaceChildren(...y(c,u,m)),p(c,u,g,a,m)}function l(){M(o(".td-spread-said"),"There are no latencies \
here."),window.Plotly&&Plotly.purge(r),o("table").replaceChildren()}function k(c,i,{beyond:f},u,m){return c.arms.map(({name:h},g)=>{if(!i[g].length)return"Arm "+
h+" has none yet.";let[a,w]=[.25,.75].map(d=>te(1e3*he(i[g],d))),b=f[g]?", and "+I(f[g])+" longer than the "+te(1e3*u)+" ms that are drawn":"";return"Half of th\
e "+m+" of arm "+h+" took "+a+" to "+w+" ms"+b+"."}).join(" ")}function y(c,i,f){let u=(h,g,a)=>{let w=x("tr",a);return g.forEach((b,d)=>{let v=x(d?h:"th","",b);
v.tagName==="TH"&&(v.scope=d?"col":"row"),w.append(v)}),w},m=u("th",["ms",f[0].toUpperCase()+f.slice(1),"Mean",...Ot.map(([h])=>h)],"");return m.cells[0].scope=
"col",[m,...c.arms.map(({name:h},g)=>{let a=i[g],w=a.reduce((d,v)=>d+v,0)/a.length,b=Ot.map(([,d])=>a.length<(n[d]||1)?"needs "+n[d]:te(1e3*he(a,d)));return u("\
td",["Arm "+h,I(a.length),...a.length?[te(1e3*w),...b]:[]],"arm-"+h.toLowerCase())})]}function p(c,i,{edges:f,shares:u},m,h){let g=z("--body-text-color"),a=z("-\
-border-color-primary"),w=f.map(C=>1e3*C),b=c.arms.flatMap(({name:C},P)=>{let R={width:1.6,...ee(c.arms[P],P)},X=no(i[P],m),D={type:"scatter",mode:"lines",name:V(
C),line:R,hoverinfo:"skip"};return[{...D,x:w,y:[...u[P].map(F=>100*F),0],line:{...R,shape:"hv"},fill:"tozeroy",fillcolor:R.color+"30"},{...D,x:X.map(F=>1e3*F[0]),
y:X.map(F=>100*F[1]),line:{...R,shape:"hv"},xaxis:"x2",yaxis:"y2",showlegend:!1}]}),d=.02*(w[w.length-1]-w[0]),v=[w[0]-d,w[w.length-1]+d],_={gridcolor:a,linecolor:a,
zeroline:!1,nticks:6,fixedrange:!0},L=C=>({text:C,standoff:4});re().then(()=>Plotly.react(r,b,{paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{
color:g,size:11,family:z("--font")||"sans-serif"},height:260,margin:{t:24,b:38,l:46,r:8},hovermode:!1,legend:{orientation:"h",x:1,xanchor:"right",y:1,yanchor:"b\
ottom"},xaxis:{..._,range:v,domain:[0,.47],title:L("latency, ms")},yaxis:{..._,title:L("% of "+h),rangemode:"tozero"},xaxis2:{..._,domain:[.55,1],anchor:"y2",matches:"\
x",title:L("latency, ms")},yaxis2:{..._,anchor:"x2",title:L("cumulative %"),range:[0,101]}},{staticPlot:!0,responsive:!0,showSendToCloud:!1}))}return{show:s,openOn(c){
e.addEventListener("click",()=>{c()&&(t.showModal(),s(...c()))}),t.querySelector(".td-close").addEventListener("click",()=>t.close()),t.addEventListener("click",
i=>{i.target===t&&t.close()})},follow(c){t.open&&c()&&s(...c())}}}var oo=3,ro=8e3;function Nt(e,t,n){let o=60,r=0,s=!1,l=0,k=0,y=0,p=0,c=!1,i=!1;function f(g){return new Promise((a,w)=>{let b=setTimeout(()=>w(new Error("no ans\
wer")),ro);g.then(d=>{clearTimeout(b),a(d)},d=>{clearTimeout(b),w(d)})})}async function u(){let g=p;l++;try{let a="more";for(;a==="more";){let w=await f(e());if(g!==
p)return;i=!0,k&&(k=0,y=0,n("")),a=t(w)}a==="over"&&(c=!1)}catch{if(g!==p||!c)return;k++;let a=Math.min(1e4,250*2**k);y=performance.now()+a,n("The server does n\
ot answer. Retrying in "+$(a/1e3)+"; nothing is lost.")}finally{l--}}async function m(){if(!element.isConnected)return;let g=k||!i||s?1:oo,a=c&&!document.hidden&&
l<g&&performance.now()>=y,w=a&&u();s&&await w,setTimeout(m,Math.max(o,r))}setTimeout(m,0),document.addEventListener("visibilitychange",()=>{!document.hidden&&element.
isConnected&&c&&l===0&&(y=0,u())});function h(){p++,k=0,y=0,i=!1,c=!0,n(""),document.hidden||u()}return{begin:h,stop(){p++,c=!1},every(g,a=!1){o=g,s=a},atLeast(g){
r=g},get running(){return c}}}var It=4e3;function so(e,t,n){let o=q(e.t,n);if(o>=e.t.length)return e.n.length?e.n[e.n.length-1]:0;let r=o?[e.t[o-1],e.n[o-1]]:[t,0];return n<=r[0]?r[1]:Math.floor(
r[1]+(e.n[o]-r[1])*(n-r[0])/(e.t[o]-r[0]))}function ao(e,t){let n=Rt(e.t,t),o=Rt(e.st,t),r={...e};for(let s of Le)r[s]=e[s].slice(0,n);for(let s of["st","sm"])r[s]=
e[s].slice(0,o);return r}function Rt(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<=t?n=r+1:o=r}return n}function Bt(e,t,n,o,r,s){let l=null,k=[],y=0,p=0,
c=!1,i=0;function f(w,b){l=w,k=b,y=Math.max(0,...k.map(v=>v.t.length?v.t[v.t.length-1]:0));let d=y>0&&l.unit!=="forward"&&l.arms.some(v=>v.pace.t.length);e.disabled=
t.disabled=o.disabled=!d,t.max=String(y),d&&(p=y,t.value=String(y),u())}function u(){M(e,c?"❚❚ Pause":"▶ Race");let w=l?l.arms.filter((d,v)=>k[v].t.length&&
p>=k[v].t[k[v].t.length-1]).map(d=>d.name):[],b=p<y&&w.length?", "+w.join(" and ")+" done":"";M(n,y?p.toFixed(y>=100?0:y>=10?1:2)+" of "+$(y)+b:""),t.setAttribute(
"aria-valuetext",$(p))}function m(){p>=y?(r.whole(),s(null,null)):(l.arms.forEach((w,b)=>r.upTo(b,k[b].t.length?so(w.pace,k[b].t[0],p):0)),s(p,k.map(w=>ao(w,p)))),
u()}function h(w){if(!c||!element.isConnected)return;let b=Math.max(0,w-i);p=Math.min(y,p+b/1e3*Number(o.value)),i=w,p>=y&&(c=!1),t.value=String(p),m(),c&&requestAnimationFrame(
h)}function g(){c=!1,y=0,p=0,l=null,k=[],e.disabled=t.disabled=o.disabled=!0,t.value="0",s(null,null),u()}function a(){e.disabled||(c=!c,c&&(p>=y&&(p=0),i=performance.
now(),requestAnimationFrame(h)),m())}return e.addEventListener("click",a),t.addEventListener("input",()=>{c=!1,p=Number(t.value),m()}),{ready:f,clear:g,toggle:a}}var io=5e3,lo=3e3;function Ut(e){let t=[],n=null,o=[];function r(i,f){if(e.replaceChildren(),o=[],f==="forward"){t=[],e.append(x("p","td-empty","An encoder gene\
rates no text: its forward passes are timed."));return}t=i.map(u=>{let m=x("section","td-text arm-"+u.name.toLowerCase()),h=x("div","td-scroll");h.tabIndex=0,h.
setAttribute("role","region"),h.setAttribute("aria-label","Text of arm "+u.name);let g=x("div","td-body");return g.append(document.createTextNode("")),h.append(
g),m.append(h),e.append(m),{body:g}}),n=x("p","td-text-comparison",""),e.append(n)}function s(i,f){if(!f||!t[i])return;let u=t[i].body.firstChild;u.appendData(f),
u.length>io&&u.deleteData(0,u.length-lo)}function l(i,f,u){if(!t[i])return;o[i]={text:f,difference:u};let m=t[i].body;if(m.replaceChildren(),u<0){m.append(document.
createTextNode(f));return}let h=x("span","td-divergent"),g=x("mark","td-difference","≠");g.title="The texts differ from here on.",h.append(document.createTextNode(
f.slice(u))),m.append(document.createTextNode(f.slice(0,u)),g,h)}function k(){for(let{body:i}of t){let f=i.parentElement,u=i.querySelector(".td-difference");u&&
(f.scrollTop+=u.getBoundingClientRect().top-f.getBoundingClientRect().top-f.clientHeight/3)}}function y(i,f){if(!t.length)return;let u=i.map(b=>b.text),[m,h]=u,
g=u.length<2?-1:dt(m,h);if(u.forEach((b,d)=>{l(d,b,g),t[d].body.closest(".td-text").classList.toggle("td-unwritten",!b)}),k(),u.length<2)return;let a=Math.min(m.
length,h.length),w=g<0&&m.length===h.length;a?w?M(n,"The texts are identical."):g<0?M(n,"The first "+I(a)+" characters are identical; one text is longer."):f?.startsWith(
"The texts differ")?M(n,"Marked ≠: "+f):M(n,"The texts first differ at character "+I(g+1)+", marked ≠. "+(f||"")):M(n,"")}function p(i,f){if(!t[i]||!o[i])return;
let u=o[i].text.slice(0,f),m=document.createTextNode(u.slice(-It));t[i].body.replaceChildren(m)}function c(){t.forEach((i,f)=>{o[f]&&l(f,o[f].text,o[f].difference)}),
k()}return{build:r,append:s,finish:y,upTo:p,whole:c}}function qt(e){let t=x("b",""),n=x("div","td-run-parts"),o=x("span","td-run-rule");e.append(t,n,o);let r=null,s=0,l=!1,k=null,y=()=>l?0:(performance.now()-s)/1e3;
function p(f,u){if(r=f,s=performance.now(),l=u,e.hidden=!r,!r)return;k=null;let m=fo(r.parts);n.replaceChildren(...r.parts.map((h,g)=>{let a=x("span","td-run-pa\
rt "+h.state);return a.style.flexGrow=String(m[g]),h.state==="now"&&a.append(k=x("i","")),a.append(x("span","",h.text)),a.title=h.text,a})),M(o,r.rule),c()}function c(){
if(!r)return;M(t,r.label||co(r,y()));let f=r.parts.find(u=>u.state==="now");k&&f&&(k.style.width=f.expected_s?(100*Math.min(.97,(f.spent_s+y())/f.expected_s)).toFixed(
1)+"%":"0")}function i(){if(!r||r.label)return"";let f=r.parts.find(u=>u.state==="now");return r.left_s===null||!f?f?.text??"":je(r.left_s-y())}return{take:p,tick:c,
title:i,clear:()=>p(null,!0)}}function co(e,t){return e.left_s!==null?"About "+je(e.left_s-t)+" to go":e.most_s!==null?"Pairs: at most "+je(e.most_s-t):e.parts.
some(n=>n.state==="now")?"No earlier run here, "+Math.floor(e.spent_s+t)+" s so far":"Waiting"}function je(e){let t=Math.max(1,Math.round(e));return t<90?t+" s":
Math.round(t/60)+" min"}function fo(e){let t=e.map(o=>Math.max(o.spent_s,o.expected_s??0)),n=t.reduce((o,r)=>o+r,0);return t.map(o=>o||n/5||1)}function jt(e){let t=null,n=[],o=0;function r(c){e.replaceChildren(),n=c.map(i=>{let f=x("div","td-phases arm-"+i.name.toLowerCase()),u=x("span","td-steps"),m=x(
"i","td-phase-bar");return f.append(x("span","td-arm",i.name),x("b","td-label",i.label),u,m),e.append(f),{steps:u,bar:m,chips:new Map}})}function s(c,i,f){let u=c.
state==="begin"||c.state==="step",m=c.title+" "+$(u?Math.max(c.seconds,i-c.begin_s):c.seconds);return c.name==="run"&&!(t.quality&&!f)?m+=", "+I(f)+" of "+I(t.max_new_tokens)+
(t.unit==="forward"?" passes":" tokens"):u&&c.fraction!==null&&(m+=", "+Math.round(100*c.fraction)+"%"),c.wait&&(m+=", "+c.wait),u&&c.note&&(m+=" ("+c.note+")"),
c.state==="broken"?"✕ "+m:m}function l(c,i){return c.expected_s?Math.min(.95,(i-c.begin_s)/c.expected_s):0}function k(c,i){if(!t)return;let f=t.now_s+(performance.
now()-o)/1e3;t.arms.forEach((u,m)=>{let h=n[m];if(!u.phases.length){M(h.steps,i?"did not run":m?"waiting for arm "+t.arms[m-1].name:"waiting");return}h.chips.size||
h.steps.replaceChildren();for(let b of u.phases){let d=h.chips.get(b.name);d||(d=x("span",""),h.chips.set(b.name,d),h.steps.append(d));let v="td-step "+b.state;
d.className!==v&&(d.className=v),M(d,s(b,f,c[m].t.length))}let g=u.phases[u.phases.length-1],a=g.name==="run"?c[m].t.length/t.max_new_tokens:g.fraction||l(g,f),
w=u.state==="working"?(100*Math.min(1,a)).toFixed(1)+"%":"0";h.bar.style.width!==w&&(h.bar.style.width=w)})}function y(c){t=c,o=performance.now()}function p(){t=
null,n=[],e.replaceChildren()}return{build:r,take:y,tick:k,clear:p}}function Ft(e,t,n,o,r,s){function l(c,i){M(e,y(c,i)),e.classList.toggle("td-underway",!c.verdict.sentence),M(t,c.verdict.basis),M(o,c.verdict.unasked),s&&M(s,c.
verdict.pays),k(c.verdict),n.hidden=!c.digest,c.digest&&(n.className="td-digest "+c.digest.status,M(n,c.digest.line))}function k({gate:c,gate_run:i}){!r||r.textContent===
(c||"")||(r.replaceChildren(),r.title=c||"",c&&(i?r.append(Object.assign(x("a","td-gate-line",c),{href:"?"+new URLSearchParams({run:i})})):r.append(x("span","td\
-gate-line",c))))}function y(c,i){if(c.verdict.sentence)return c.verdict.sentence;if(i==="queued")return"Waiting for the runs before this one.";if(i!=="running")
return i==="done"?"The run is complete.":i==="cancelled"?"Stopped before both arms were complete: no verdict.":"";let f=c.arms.find(h=>h.state==="working");if(!f)
return"Starting.";let u=c.arms.filter(h=>h.state==="waiting").map(h=>h.name),m=f.phases.at(-1);return"Running arm "+f.name+(m?": "+m.title:"")+(u.length?"; then\
 arm "+u.join(" and ")+".":".")}function p(){M(e,""),M(t,""),M(o,""),s&&M(s,""),k({gate:"",gate_run:""}),n.hidden=!0}return{take:l,clear:p}}function Dt(e,t){let n=x("div","td-said"),o=x("div","td-four"),r=x("div","td-advice"),s=x("p","td-lead"),l=x("p","td-number"),k=x("p","td-tail"),y=x("div","td-s\
cale"),p=x("p","td-badge-said"),c=x("p","td-reason"),i=x("button","td-next");i.type="button";let f=x("div","td-ratio");f.append(l,y),n.append(s,f,k),r.append(p,
c,i),e.append(n,o,r);let u=null;i.addEventListener("click",()=>{t&&u?.next&&t(u.next)});function m(a){u=a,e.hidden=!a,a&&(e.className="td-answer "+a.tone+(a.decided?
" td-decided":""),M(s,a.lead),M(l,a.figure),M(k,a.tail),g(a),o.replaceChildren(...a.tiles.map(h)),M(p,a.recommendation),M(c,a.reason),i.hidden=!t||!a.next,a.next&&
M(i,a.next.label))}function h(a){let w=x("div","td-one"),b=x("p","td-values");return b.append(x("b",a.b?"arm-a":"",a.a)),a.b&&b.append(x("span",""," → "),x("b",
"arm-b",a.b)),a.unit&&b.append(x("small",""," "+a.unit)),w.append(x("h3","",a.title),b,x("p","td-one-note",a.note)),w}function g(a){if(y.replaceChildren(x("p","\
td-ends",a.ends||(a.pairs.length===1?"one pair, no interval yet":""))),a.low===null||a.high===null)return;let w=uo(a),b=x("div","td-axis-line"),d=L=>100*(Math.log(
L)-w.from)/(w.to-w.from)+"%",v=x("i","td-band");v.style.left=d(Math.max(a.low,Math.exp(w.from))),v.style.right="calc(100% - "+d(Math.min(a.high,Math.exp(w.to)))+
")",b.append(v,...a.pairs.map(L=>Object.assign(x("i","td-pair"),{style:"left:"+d(L)}))),w.from<0&&w.to>0&&b.append(Object.assign(x("i","td-even"),{style:"left:"+
d(1),title:"as fast"})),b.append(Object.assign(x("i","td-middle"),{style:"left:"+d(a.ratio)}));let _=x("div","td-ticks");for(let L of[Math.exp(w.from),Math.exp(
w.to)])_.append(x("span","",po(L)));y.append(b,_)}return{take:m,clear:()=>m(null)}}function uo(e){let t=e.pairs.map(Math.log),n=Math.log(e.ratio),o=Math.max(.01,
Math.max(...t)-n,n-Math.min(...t)),r=Math.min(4*o,Math.max(Math.log(e.high)-n,n-Math.log(e.low))),s=1.15*Math.max(o,r);return{from:n-s,to:n+s}}function po(e){return(e>=
10?e.toFixed(1):e.toFixed(2))+"×"}var zt=[["title","Text",""],["positions","Positions","tokens that both arms were asked to predict"],["a","Perplexity A",""],["b","Perplexity B",""],["ratio","B \
/ A","perplexity of B / perplexity of A"],["kl","KL, nats","mean divergence of B from A"],["largest","Largest KL","at a single position"],["agreement","Agreemen\
t","positions at which both find the same token most likely"],["divergence","First divergence","first position at which they do not"]];function Ht(e){let t="";function n(s){
let l=JSON.stringify(s);if(l===t||(t=l,e.hidden=!s,e.replaceChildren(),!s)||(e.append(x("h3","","Quality on given texts")),e.append(o(s.rows)),s.progress&&e.append(
x("p","td-quality-progress",s.progress)),s.note&&e.append(x("p","",s.note)),!s.compared))return;let k=x("p",""),y=x("a","td-compared","The comparison of these a\
rms");y.href="?"+new URLSearchParams({run:s.compared}),k.append(y,document.createTextNode(" names this cost beside its gain.")),e.append(k)}function o(s){let l=x(
"div","td-quality-rows"),k=x("table",""),y=x("tr",""),p=x("thead",""),c=x("tbody","");l.tabIndex=0,l.setAttribute("role","region"),l.setAttribute("aria-label","\
Quality by text");for(let[,i,f]of zt){let u=x("th","",i);u.scope="col",u.title=f,y.append(u)}p.append(y);for(let i of s){let f=x("tr",i===s[s.length-1]?"td-all-\
texts":""),u=x("th","",i.title);u.scope="row",f.append(u,...zt.slice(1).map(([m])=>x("td","",i[m]))),c.append(f)}return k.append(p,c),l.append(k),l}function r(){
t="",e.hidden=!0,e.replaceChildren()}return{take:n,clear:r}}function Xt(e){let t=new Map,n="";function o(k,y){let p=[...new Map(k.flatMap(i=>i.tiles.map(f=>[f.key,f.label])))],c=JSON.stringify([p,k.map(i=>i.name)]);n!==c&&
s(p,k,c);for(let[i]of p){let f=k.map(d=>d.tiles.find(v=>v.key===i)),{card:u,values:m,unit:h,foot:g}=t.get(i),a=[...new Set(f.map(d=>d&&d.unit).filter(Boolean))],
w=a.length===1;m.forEach((d,v)=>{let _=f[v],L=_&&_.value!=="n/a";M(d.number,L?_.value:"–"),M(d.unit,L&&!w&&_.unit?" "+_.unit:"")}),M(h,w?a[0]:"");let b=y[i];M(
g,b?b.text:r(f.map(d=>d?d.note:""))),g.className="td-foot"+(b&&b.better?" better":""),u.title=f.map((d,v)=>d&&d.note?k[v].name+": "+d.value+" "+d.unit+", "+d.note:
"").filter(Boolean).join(`
`)}}function r(k){let[y,...p]=new Set(k.filter(Boolean)),c=k.every(Boolean);return y&&!p.length&&(c||!/\d/.test(y))?y:""}function s(k,y,p){e.replaceChildren(),t=
new Map,n=p;for(let[c,i]of k){let f=x("div","td-tile"),u=x("p","td-figure"),m=x("span","td-unit",""),h=x("small","td-foot","");f.dataset.key=c;let g=y.map(a=>{let w=x(
"b","arm-"+a.name.toLowerCase()),b=x("span","",""),d=x("small","","");return w.append(b,d),u.append(x("span","td-hidden","Arm "+a.name+": "),w),{number:b,unit:d}});
u.append(m),f.append(x("h3","",i),u,h),e.append(f),t.set(c,{card:f,values:g,unit:m,foot:h})}}function l(){for(let{card:k,values:y,unit:p,foot:c}of t.values())k.
title="",y.forEach(i=>{M(i.number,"–"),M(i.unit,"")}),M(p,""),M(c,"")}return{take:o,clear:l}}function Wt(e){let t="";function n(s){let l=s.filter(f=>f.details.length),k=JSON.stringify(l.map(f=>[f.name,f.details]));if(k===t)return;if(t=k,e.replaceChildren(),
!l.length){e.append(x("p","td-empty","Percentiles, intervals and readings of the machine appear here once an arm has finished."));return}let y=x("table",""),p=x(
"thead",""),c=x("tbody","");p.append(_e("Figure",l));let i=new Map(l.flatMap(f=>f.details.map(u=>[u.key,u.label])));for(let[f,u]of i){let m=x("tr",""),h=x("th",
"",u);h.scope="row",m.dataset.key=f,m.append(h,...l.map(g=>o(g.details.find(a=>a.key===f)))),c.append(m)}y.append(p,c),e.append(y)}function o(s){let l=x("td","");
return s&&(l.append(x("b","",s.value),document.createTextNode(s.unit?" "+s.unit:"")),s.note&&l.append(x("small","",s.note))),l}function r(){t="",e.replaceChildren()}
return{take:n,clear:r}}var mo={verified:"✓ verified",partial:"◐ partial",no_effect:"○ no effect",fallback:"▲ fallback",failed:"✕ failed",unchecked:"◌ unchecked",off:"off",
not_applicable:"not applicable"};function Jt(e){let t="",n=!1;function o(y,p){let c=JSON.stringify([y.map(w=>w.ledger),p]);if(c===t)return;if(t=c,e.replaceChildren(),
!p){e.append(x("p","td-empty","Proof that each choice took effect appears here once an arm has finished."));return}let i=x("table",""),f=x("tr",""),u=x("thead",
""),m=x("tbody",""),h=x("caption","","Ledger");h.append(x("small","",p.line)),i.append(h);for(let w of["Axis","Arm","Requested","Planned","Effective","Status","\
Proof"]){let b=x("th","",w);b.scope="col",b.role="columnheader",f.append(b)}u.append(f);for(let[w,b]of[[u,"rowgroup"],[m,"rowgroup"],[f,"row"]])w.role=b;let g=[
...new Set(y.flatMap(w=>w.ledger.map(b=>b.axis)))];for(let w of g){let b=s(y,w);b.forEach((d,v)=>{let _=l(d,p.titles[w]||w,v?0:b.length);_.classList.toggle("td-\
quiet",!p.shown.includes(w)),m.append(_)})}let a=x("button","td-all","");a.type="button",a.addEventListener("click",()=>{n=!n,r(i,a,g.length,p)}),i.append(u,m),
e.append(i,a),r(i,a,g.length,p)}function r(y,p,c,i){let f=!n&&!i.shown.length;y.classList.toggle("td-folded",!n),y.classList.toggle("td-none",f),y.role=f?"prese\
ntation":"table",p.hidden=i.shown.length===c,M(p,n?"Only what differs or is not verified":"All "+c+" axes with their proof"),p.setAttribute("aria-expanded",String(
n))}function s(y,p){let c=new Map;for(let i of y)for(let f of i.ledger.filter(u=>u.axis===p)){let u=JSON.stringify(f);c.has(u)?c.get(u).arms.push(i.name):c.set(
u,{...f,arms:[i.name]})}return[...c.values()]}function l(y,p,c){let i=x("tr",y.status);if(i.role="row",c){let m=x("th","",p);m.scope="rowgroup",m.rowSpan=c,m.role=
"rowheader",i.append(m)}let f=x("td","td-who");for(let m of y.arms){let h=x("span","arm-"+m.toLowerCase());h.append(x("span","td-arm",m)),f.append(h)}i.append(f);
for(let m of["requested","planned","effective"]){let h=x("td","td-choice",y[m]);h.dataset.title=m,i.append(h)}i.append(x("td","td-status",mo[y.status]||y.status));
let u=x("td","td-proof",y.proof);y.reason&&u.append(x("small","",y.reason)),i.append(u);for(let m of i.querySelectorAll("td"))m.role="cell";return i}function k(){
t="",n=!1,e.replaceChildren()}return{take:o,clear:k}}var Kt={ok:"",note:"Note: ",fallback:"▲ Fallback: ",blocked:"✕ Blocked: "};function Vt(e,t){let n=t.flatMap(r=>[...r.verdicts.filter(s=>s.level!=="ok").map(
s=>({arm:r.name,level:s.level,text:Kt[s.level]+s.reason})),...r.spoilers.map(s=>({arm:r.name,level:"fallback",text:"▲ "+s})),...r.notes.map(s=>({arm:r.name,level:"\
note",text:Kt.note+s}))]),o=JSON.stringify(n);e.dataset.shown!==o&&(e.dataset.shown=o,e.replaceChildren(...n.map(r=>{let s=x("li",r.level+" arm-"+r.arm.toLowerCase());
return s.append(x("span","td-arm",r.arm),document.createTextNode(r.text)),s})))}function Fe(e,{of:t,title:n,hint:o,whole:r,numbers:s,lacking:l}){let k="";function y(m){let h=m.map(d=>({name:d.name,step:t(d)})).filter(d=>d.step),g=JSON.stringify(
h);if(g===k)return;k=g,e.hidden=!h.length;let a=h.filter(d=>!d.step.missing),w=Math.max(...a.map(d=>d.step.seconds)),b=x("h3","",n);if(a.some(d=>d.step.parts.some(
v=>v.reads_s!==null))&&b.append(x("span","td-part-hint",o)),e.replaceChildren(b,...a.map(d=>c(d,w))),a.length){let d=x("div","td-part-scroll");d.tabIndex=0,d.setAttribute(
"role","region"),d.setAttribute("aria-label",s),d.append(i(a)),e.append(d)}for(let d of h){let v=x("p","arm-"+d.name.toLowerCase());v.append(x("span","td-arm",d.
name),document.createTextNode(d.step.missing?l+d.step.missing+".":p(d.step.said))),e.append(v)}}function p(m){return m[0].toUpperCase()+m.slice(1)+"."}function c({
name:m,step:h},g){let a=x("div","td-part-bar arm-"+m.toLowerCase()),w=x("div","td-part-track");a.setAttribute("aria-hidden","true");for(let b of h.parts){if(!b.
seconds)continue;let d=x("span","td-part-piece td-part "+b.key);if(d.style.width=100*b.seconds/g+"%",d.title=[b.label+" "+b.text,b.reads].filter(Boolean).join("\
, "),b.reads_s!==null){let v=x("i","td-part-need");v.style.width=Math.min(100,100*b.reads_s/b.seconds)+"%",d.append(v)}w.append(d)}return a.append(x("span","td-\
arm",m),w),a}function i(m){let h=x("table",""),g=x("thead",""),a=x("tbody","");g.append(_e("Part",m));let w=[];for(let v of m){let _=0;for(let L of v.step.parts){
let C=w.findIndex(P=>P.key===L.key);C<0?w.splice(_++,0,L):_=C+1}}for(let{key:v,label:_}of w){let L=x("tr",""),C=x("th","");L.dataset.key=v,C.scope="row",C.append(
x("i","td-part-key td-part "+v),document.createTextNode(_)),L.append(C,...m.map(P=>f(P.step.parts.find(R=>R.key===v)))),a.append(L)}let b=x("tr",""),d=x("th","",
r);return d.scope="row",b.append(d,...m.map(v=>x("td","",v.step.text))),a.append(b),h.append(g,a),h}function f(m){let h=x("td","");return m&&(h.append(x("b","",
m.text),document.createTextNode(m.seconds===null?"":" "+Math.round(100*m.share)+"%")),m.reads&&h.append(x("small","",m.reads))),h}function u(){k="",e.hidden=!0,
e.replaceChildren()}return{take:y,clear:u}}function Gt(e){let t="",n=null;function o(l){let k=JSON.stringify(l.crossing??null);if(k===t)return;if(t=k,n=l.crossing?l:null,e.hidden=!n,!n){e.replaceChildren();
return}let y=x("h3","","When does waiting pay?");y.append(x("span","td-part-hint","seconds since the imports were done, over "+(l.unit==="forward"?"forward pass\
es":"tokens written")));let p=x("div","td-crossing-plot");p.setAttribute("aria-hidden","true"),e.replaceChildren(y,p),r()}function r(){if(!n)return;let{arms:l,crossing:{
starts_s:k,steps_s:y,tokens:p,label:c}}=n,i=e.querySelector(".td-crossing-plot"),f=z("--body-text-color"),u=z("--border-color-primary"),m=2*p,h=(d,v)=>k[d]+v*y[d],
g=Math.max(...l.map((d,v)=>h(v,m))),a=l.map((d,v)=>({type:"scatter",mode:"lines",name:"Arm "+V(d.name),line:{width:2,...ee(d,v)},x:[0,m],y:[h(v,0),h(v,m)]})),w=h(
0,p),b={gridcolor:u,linecolor:u,zeroline:!1,nticks:6,fixedrange:!0};a.push({type:"scatter",mode:"markers",x:[p],y:[w],marker:{size:9,color:z("--body-background-\
fill"),line:{width:2,color:f}},showlegend:!1}),re().then(()=>Plotly.react(i,a,{paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:f,size:11,
family:z("--font")||"sans-serif"},height:220,margin:{t:24,b:38,l:46,r:8},hovermode:!1,legend:{orientation:"h",x:1,xanchor:"right",y:1,yanchor:"bottom"},xaxis:{...b,
range:[0,m],tickformat:",",title:{text:n.unit==="forward"?"forward passes":"tokens",standoff:4}},yaxis:{...b,range:[0,1.05*g],ticksuffix:" s"},annotations:[{x:p,
y:w,text:"<b>"+V(c)+"</b>",showarrow:!1,yanchor:"top",xanchor:"left",xshift:8,yshift:-6}]},{staticPlot:!0,responsive:!0,showSendToCloud:!1}))}function s(){o({})}
return Me(r),{take:o,clear:s}}var ho="Press Run: both arms write your prompt in turn, until it is decided which is faster. Texts, speed, memory and KV cache appear here as they are written, \
with proof that each choice took effect.",Qt=new URLSearchParams(location.search).get("pace"),go=75,xo=60,Zt=At(T(".td-plot"),T(".td-moments"),T(".td-noted"),settings.
charts),wo={outliers:T(".td-outliers"),axes:T(".td-axis"),whole:T(".td-whole")},ko=Ct(T(".td-plot"),T(".td-fresh"),settings.charts),G=Et(T(".td-plot"),settings.
charts,wo,Zt,ko),Oe=Ut(T(".td-texts")),De=Bt(T(".td-race"),T(".td-scrub"),T(".td-clock"),T(".td-speed"),Oe,(e,t)=>{G.only(t),Zt.pointAt(e)}),en=Pt(T(".td-distri\
bution"),T(".td-spread"),settings.fewest),tn=()=>S&&[S,j,G.zoom],xe=jt(T(".td-progress")),we=qt(T(".td-run-bar")),He=Ft(T(".td-sentence"),T(".td-basis"),T(".td-\
digest"),T(".td-unasked"),T(".td-gate"),T(".td-pays")),Xe=Dt(T(".td-answer"),settings.links?_o:null),nn=Ht(T(".td-quality")),on=Xt(T(".td-tiles")),rn=Wt(T(".td-\
rows")),sn=Jt(T(".td-ledger")),an=Fe(T(".td-parts"),{of:e=>e.step,title:"Where the time of a step goes",hint:"the line under a part is the time that its bytes n\
eed",whole:"Measured",numbers:"Parts of a step as numbers",lacking:"Not traced: "}),ln=Fe(T(".td-start"),{of:e=>e.start,title:"From process to first token",whole:"\
Together",numbers:"Parts of a start as numbers"}),cn=Gt(T(".td-crossing")),j=[],S=null,H="",Yt="",We=-1,fn=0,ze=0,ce=!1,Je=!1,oe=!1,ge=!1,Ee=Nt(yo,bo,e=>M(T(".t\
d-connection"),e));async function yo(){let e=++fn,t=H,n=j.length?j.map(Pe):[[0,0,0],[0,0,0]];ce&&n.forEach(s=>{s[2]=0});let o=ge&&!ce&&!Je?xo:0,r=JSON.parse(await server.
pull({run:t,version:We,cur:n,wait_ms:o}));return r.seq=e,r}function bo(e){if(e.error)return nt(H,e.error),"over";if(e.run!==H||oe)return oe?"over":"wait";if(e.head&&
e.seq>ze&&(ze=e.seq,vo(e)),!S)return"wait";tt(e.status,e.queue),rt(e.trouble),Ee.atLeast(e.every_ms);let t=!1,n=!1;return e.lanes.forEach((o,r)=>{if(!j[r])return;
ce&&o.cfirst===0&&ft(j[r],o);let s=ct(j[r],o);Oe.append(r,s.added),n=n||s.tokens>0||s.samples>0,t=t||o.n-o.first>=settings.most}),Je=t,n&&(G.grow(),en.follow(tn)),
window.tokendynoProbe&&window.tokendynoProbe.arrived(j.map(o=>o.t.length)),e.ended?ce?e.lanes.every(o=>o.cfirst===0)?(Mo(e),"over"):"more":(ce=!0,"more"):t?"mor\
e":"wait"}function vo(e){let t=!S;S=e.head,We=e.version,t&&(j=S.arms.map(it),Oe.build(S.arms,S.unit),xe.build(S.arms),element.classList.toggle("single",S.arms.length===
1),M(T(".td-empty-run"),""),ae(!1)),M(T(".td-title"),S.title),M(T(".td-note"),S.note),xe.take(S),we.take(settings.replays?null:S.bar,e.ended),He.take(S,e.status),
Xe.take(S.card),T(".td-verdict").classList.toggle("td-carded",!!S.card),M(T(".td-sure"),S.card?S.card.confidence:""),Ke(S.heading||we.title()),nn.take(S.quality),
element.classList.toggle("td-reads",!!S.quality),on.take(S.arms,S.differences),rn.take(S.arms);let n=S.arms.filter(r=>r.spoilers.length).map(r=>r.name);M(T(".td\
-interference"),n.length?"▲ Possible interference ("+n.join(" and ")+")":""),Ue(T(".td-annotations"),S.arms,S.unit),sn.take(S.arms,S.digest),an.take(S.arms),ln.
take(S.arms),cn.take(S),Vt(T(".td-remarks"),S.arms),st(e.status,S.message)&&ae(!S.arms.some(r=>r.prompt_tokens)),G.take(S,j),dn(e.ended)}function dn(e){ge=!e&&(Qt?
Qt==="quiet":S.quiet&&et),G.pace(...ge?[60,1e3,6e3]:[10,300,1e3]),Ee.every(...ge?[go,!0]:[60,!1])}async function $t(){let e=H;if(!(oe&&!document.hidden&&S.verdict.
gate&&!S.verdict.gate_run))return;let n=JSON.parse(await server.pull({run:e,version:-1,cur:j.map(Pe),anew:!0}).catch(()=>"{}"));!n.head||e!==H||!oe||(S.verdict=
n.head.verdict,S.card=n.head.card,He.take(S,n.status),Xe.take(S.card))}function Mo(e){oe=!0,dn(!0),xe.tick(j,!0),Oe.finish(j,S.texts),G.end(),De.ready(S,j),element.
dataset.status=e.status,element.dataset.over=e.run,trigger("finished",{run:e.run,status:e.status}),settings.replays&&!matchMedia("(prefers-reduced-motion: reduc\
e)").matches&&De.toggle()}function un(e){if(H=e||"",j=[],S=null,We=-1,ze=fn,ce=!1,Je=!1,oe=!1,ot(H,["interference","sure"]),T(".td-verdict").classList.remove("t\
d-carded"),element.classList.remove("td-reads"),settings.links&&window.dispatchEvent(new Event("tokendyno-run")),Ke(""),T(".td-texts").replaceChildren(),Ue(T(".\
td-annotations"),[]),De.clear(),we.clear(),xe.clear(),He.clear(),Xe.clear(),nn.clear(),on.clear(),rn.clear(),sn.clear(),an.clear(),ln.clear(),cn.clear(),G.reset(
H),M(T(".td-empty-run"),H||!settings.links?"":[ho,settings.first].filter(Boolean).join(" ")),H||ae(!0),settings.links&&at(H),!H){Ee.stop();return}Ee.begin()}function Ke(e){
!settings.links||e===Yt||(Yt=e,window.tokendynoAddress?.title("compare",e))}function _o(e){let t=o=>document.querySelector(o);if(e.action==="run"){t("#run")?.click();
return}let n="#code-"+e.arm.toLowerCase();t(n)?.scrollIntoView({block:"start"}),t(n+" button")?.focus({preventScroll:!0})}function pn(){element.isConnected&&(S&&
!oe&&Ke(S.heading||we.title()),S&&!oe&&!document.hidden&&(we.tick(),xe.tick(j)),setTimeout(pn,ge?1e3:100))}en.openOn(tn);T(".td-csv").addEventListener("click",()=>{
S&&_t(Mt(S,j),"tokendyno-"+H+".csv")});T(".td-png").addEventListener("click",()=>{S&&G.picture("tokendyno-"+H)});Me(()=>G.touch());settings.links&&(window.addEventListener(
"tokendyno-measured",$t),document.addEventListener("visibilitychange",$t));new ResizeObserver(()=>G.touch()).observe(element);element.classList.add("td-live");element.
live={get series(){return j},get head(){return S}};watch("value",()=>{(props.value||"")!==H&&un(props.value)});ae(!0);un(props.value);pn();})();
