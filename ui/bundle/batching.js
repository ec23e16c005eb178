"use strict";(()=>{var Ae=e=>{new MutationObserver(()=>e()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};function w(e,t,n){let s=document.createElement(e);return t&&(s.className=t),n!==void 0&&(s.textContent=n),s}function ye(e,t){let n=w("tr","");n.append(w("th","",
e),...t.map(s=>{let c=w("th","arm-"+s.name.toLowerCase());return c.append(w("span","td-arm",s.name)),c}));for(let s of n.querySelectorAll("th"))s.scope="col";return n}
function M(e,t){e.textContent!==t&&(e.textContent=t)}function L(e){return element.querySelector(e)}function D(e){return getComputedStyle(element).getPropertyValue(
e).trim()}function R(e){return e.toLocaleString("en-US")}function N(e){return e>=100?Math.round(e)+" s":e.toFixed(e>=10?1:2)+" s"}var Rt={queued:"Queued",running:"Running",done:"Done",failed:"Failed",cancelled:"Stopped",interrupted:"Interrupted"},Ce=/^(localhost|127(\.\d+){3}|\[::1\])$/.test(
location.hostname);function Re(e,t){M(L(".td-status"),Rt[e]||e),e==="queued"&&t&&M(L(".td-message"),t),element.dataset.status=e}function K(e){element.classList.
toggle("td-bare",e)}function _e(e,t){for(let n of["status","empty-run"])M(L(".td-"+n),"");M(L(".td-failure"),t),K(!0),trigger("finished",{run:e,status:"unknown"})}
function Pe(e,t){for(let n of["status","over"])delete element.dataset[n];element.dataset.run=e;for(let n of["status","title","note","failure","message","connect\
ion","unkept",...t])M(L(".td-"+n),"");L(".td-remarks").replaceChildren(),delete L(".td-remarks").dataset.shown}function Ne(e){M(L(".td-unkept"),e?"▲ "+e:"")}function Ie(e,t){
let n=e==="failed"||e==="interrupted";return M(L(".td-failure"),n?t||"The run ended unexpectedly.":""),M(L(".td-message"),n?"":t),n}function te(e){return L(e)}function Oe(e){
if(L(".td-link").hidden=L(".td-files").hidden=!e,!e)return;let t=new URL(location.href);t.search="?"+new URLSearchParams({run:e}),t.hash="",te(".td-permalink").
href=t.href,M(L(".td-permalink"),t.search),te(".td-kept").href="?"+new URLSearchParams({view:"history",q:e}),L(".td-kept").hidden=e.startsWith("recorded-");for(let c of[
"dyno","html","json"])te(".td-file-"+c).href="files/"+encodeURIComponent(e)+"."+c;L(".td-file-html").hidden=!L(".td-plot");let n=new URL(location.href),s=n.searchParams.
get("view")||window.tokendynoAddress?.page;if(s&&s!=="compare"&&s!=="batching"){window.tokendynoAddress?.note(element.closest("#batch-live")?"batching":"compare",
e);return}n.searchParams.set("run",e);for(let c of["worth","sweep"])n.searchParams.delete(c);n.href!==location.href&&history.replaceState(history.state,"",n.href)}
async function _t(){let{href:e}=te(".td-permalink");try{await navigator.clipboard.writeText(e),M(L(".td-copied"),"Copied")}catch{window.prompt("Copy this link:",
e)}setTimeout(()=>M(L(".td-copied"),""),2e3)}L(".td-copy").addEventListener("click",_t);var Pt=3,Nt=8e3;function qe(e,t,n){let s=60,c=0,d=!1,o=0,u=0,f=0,h=0,r=!1,p=!1;function m(b){return new Promise((g,k)=>{let v=setTimeout(()=>k(new Error("no ans\
wer")),Nt);b.then(x=>{clearTimeout(v),g(x)},x=>{clearTimeout(v),k(x)})})}async function a(){let b=h;o++;try{let g="more";for(;g==="more";){let k=await m(e());if(b!==
h)return;p=!0,u&&(u=0,f=0,n("")),g=t(k)}g==="over"&&(r=!1)}catch{if(b!==h||!r)return;u++;let g=Math.min(1e4,250*2**u);f=performance.now()+g,n("The server does n\
ot answer. Retrying in "+N(g/1e3)+"; nothing is lost.")}finally{o--}}async function i(){if(!element.isConnected)return;let b=u||!p||d?1:Pt,g=r&&!document.hidden&&
o<b&&performance.now()>=f,k=g&&a();d&&await k,setTimeout(i,Math.max(s,c))}setTimeout(i,0),document.addEventListener("visibilitychange",()=>{!document.hidden&&element.
isConnected&&r&&o===0&&(f=0,a())});function l(){h++,u=0,f=0,p=!1,r=!0,n(""),document.hidden||a()}return{begin:l,stop(){h++,r=!1},every(b,g=!1){s=b,d=g},atLeast(b){
c=b},get running(){return r}}}function Be(e){let t=null,n=[],s=0;function c(r){e.replaceChildren(),n=r.map(p=>{let m=w("div","td-phases arm-"+p.name.toLowerCase()),a=w("span","td-steps"),i=w(
"i","td-phase-bar");return m.append(w("span","td-arm",p.name),w("b","td-label",p.label),a,i),e.append(m),{steps:a,bar:i,chips:new Map}})}function d(r,p,m){let a=r.
state==="begin"||r.state==="step",i=r.title+" "+N(a?Math.max(r.seconds,p-r.begin_s):r.seconds);return r.name==="run"&&!(t.quality&&!m)?i+=", "+R(m)+" of "+R(t.max_new_tokens)+
(t.unit==="forward"?" passes":" tokens"):a&&r.fraction!==null&&(i+=", "+Math.round(100*r.fraction)+"%"),r.wait&&(i+=", "+r.wait),a&&r.note&&(i+=" ("+r.note+")"),
r.state==="broken"?"✕ "+i:i}function o(r,p){return r.expected_s?Math.min(.95,(p-r.begin_s)/r.expected_s):0}function u(r,p){if(!t)return;let m=t.now_s+(performance.
now()-s)/1e3;t.arms.forEach((a,i)=>{let l=n[i];if(!a.phases.length){M(l.steps,p?"did not run":i?"waiting for arm "+t.arms[i-1].name:"waiting");return}l.chips.size||
l.steps.replaceChildren();for(let v of a.phases){let x=l.chips.get(v.name);x||(x=w("span",""),l.chips.set(v.name,x),l.steps.append(x));let T="td-step "+v.state;
x.className!==T&&(x.className=T),M(x,d(v,m,r[i].t.length))}let b=a.phases[a.phases.length-1],g=b.name==="run"?r[i].t.length/t.max_new_tokens:b.fraction||o(b,m),
k=a.state==="working"?(100*Math.min(1,g)).toFixed(1)+"%":"0";l.bar.style.width!==k&&(l.bar.style.width=k)})}function f(r){t=r,s=performance.now()}function h(){t=
null,n=[],e.replaceChildren()}return{build:c,take:f,tick:u,clear:h}}function De(e,t,n,s,c,d){function o(r,p){M(e,f(r,p)),e.classList.toggle("td-underway",!r.verdict.sentence),M(t,r.verdict.basis),M(s,r.verdict.unasked),d&&M(d,r.
verdict.pays),u(r.verdict),n.hidden=!r.digest,r.digest&&(n.className="td-digest "+r.digest.status,M(n,r.digest.line))}function u({gate:r,gate_run:p}){!c||c.textContent===
(r||"")||(c.replaceChildren(),c.title=r||"",r&&(p?c.append(Object.assign(w("a","td-gate-line",r),{href:"?"+new URLSearchParams({run:p})})):c.append(w("span","td\
-gate-line",r))))}function f(r,p){if(r.verdict.sentence)return r.verdict.sentence;if(p==="queued")return"Waiting for the runs before this one.";if(p!=="running")
return p==="done"?"The run is complete.":p==="cancelled"?"Stopped before both arms were complete: no verdict.":"";let m=r.arms.find(l=>l.state==="working");if(!m)
return"Starting.";let a=r.arms.filter(l=>l.state==="waiting").map(l=>l.name),i=m.phases.at(-1);return"Running arm "+m.name+(i?": "+i.title:"")+(a.length?"; then\
 arm "+a.join(" and ")+".":".")}function h(){M(e,""),M(t,""),M(s,""),d&&M(d,""),u({gate:"",gate_run:""}),n.hidden=!0}return{take:o,clear:h}}var Fe=200,me=6,Ge=8;function It(e,t){return t.find(({titles:n})=>n.some(s=>e===s||e.startsWith(s+",")))?.meaning??""}var O=null,q=null,Y=0;function Q(e,t,n){let s=It(
n,settings.terms);if(!s)return w(e,t,n);let c=w(e,t),d=w("button","td-term",n);d.type="button";let o=()=>Ot(d,s),u=()=>{Y=setTimeout(z,Fe)};return d.addEventListener(
"pointerenter",f=>{f.pointerType==="mouse"&&o()}),d.addEventListener("pointerleave",f=>{f.pointerType==="mouse"&&u()}),d.addEventListener("focus",o),d.addEventListener(
"blur",u),d.addEventListener("click",o),c.append(d),c}function Ot(e,t){O??=qt(),clearTimeout(Y),q&&q!==e&&z(),q=e,O.textContent=t,e.setAttribute("aria-described\
by",O.id),O.matches(":popover-open")||O.showPopover(),He()}function He(){if(!q)return;let e=q.getBoundingClientRect(),{width:t,height:n}=O.getBoundingClientRect(),
s=e.bottom+me+n<=window.innerHeight;O.style.left=Math.max(Ge,Math.min(e.left,window.innerWidth-t-Ge))+"px",O.style.top=(s?e.bottom+me:e.top-me-n)+"px"}function z(){
clearTimeout(Y),q?.removeAttribute("aria-describedby"),q=null,O?.matches(":popover-open")&&O.hidePopover()}function qt(){let e=w("div","td-meaning");return e.id=
"td-meaning-"+(element.id||element.closest("[id]").id),e.popover="manual",e.setAttribute("role","tooltip"),e.addEventListener("pointerenter",()=>clearTimeout(Y)),
e.addEventListener("pointerleave",()=>{Y=setTimeout(z,Fe)}),element.append(e),document.addEventListener("keydown",t=>{t.key!=="Escape"||!q||(t.preventDefault(),
z())},!0),document.addEventListener("pointerdown",t=>{let n=t.target;q&&!q.contains(n)&&!e.contains(n)&&z()}),window.addEventListener("scroll",He,{passive:!0,capture:!0}),
e}function Ue(e){let t=new Map,n="";function s(u,f){let h=[...new Map(u.flatMap(p=>p.tiles.map(m=>[m.key,m.label])))],r=JSON.stringify([h,u.map(p=>p.name)]);n!==r&&
d(h,u,r);for(let[p]of h){let m=u.map(x=>x.tiles.find(T=>T.key===p)),{card:a,values:i,unit:l,foot:b}=t.get(p),g=[...new Set(m.map(x=>x&&x.unit).filter(Boolean))],
k=g.length===1;i.forEach((x,T)=>{let y=m[T],_=y&&y.value!=="n/a";M(x.number,_?y.value:"–"),M(x.unit,_&&!k&&y.unit?" "+y.unit:"")}),M(l,k?g[0]:"");let v=f[p];M(
b,v?v.text:c(m.map(x=>x?x.note:""))),b.className="td-foot"+(v&&v.better?" better":""),a.title=m.map((x,T)=>x&&x.note?u[T].name+": "+x.value+" "+x.unit+", "+x.note:
"").filter(Boolean).join(`
`)}}function c(u){let[f,...h]=new Set(u.filter(Boolean)),r=u.every(Boolean);return f&&!h.length&&(r||!/\d/.test(f))?f:""}function d(u,f,h){e.replaceChildren(),t=
new Map,n=h;for(let[r,p]of u){let m=w("div","td-tile"),a=w("p","td-figure"),i=w("span","td-unit",""),l=w("small","td-foot","");m.dataset.key=r;let b=f.map(g=>{let k=w(
"b","arm-"+g.name.toLowerCase()),v=w("span","",""),x=w("small","","");return k.append(v,x),a.append(w("span","td-hidden","Arm "+g.name+": "),k),{number:v,unit:x}});
a.append(i),m.append(Q("h3","",p),a,l),e.append(m),t.set(r,{card:m,values:b,unit:i,foot:l})}}function o(){for(let{card:u,values:f,unit:h,foot:r}of t.values())u.
title="",f.forEach(p=>{M(p.number,"–"),M(p.unit,"")}),M(h,""),M(r,"")}return{take:s,clear:o}}function We(e){let t="";function n(d){let o=d.filter(m=>m.details.length),u=JSON.stringify(o.map(m=>[m.name,m.details]));if(u===t)return;if(t=u,e.replaceChildren(),
!o.length){e.append(w("p","td-empty","Percentiles, intervals and readings of the machine appear here once an arm has finished."));return}let f=w("table",""),h=w(
"thead",""),r=w("tbody","");h.append(ye("Figure",o));let p=new Map(o.flatMap(m=>m.details.map(a=>[a.key,a.label])));for(let[m,a]of p){let i=w("tr",""),l=w("th",
"",a);l.scope="row",i.dataset.key=m,i.append(l,...o.map(b=>s(b.details.find(g=>g.key===m)))),r.append(i)}f.append(h,r),e.append(f)}function s(d){let o=w("td","");
return d&&(o.append(w("b","",d.value),document.createTextNode(d.unit?" "+d.unit:"")),d.note&&o.append(w("small","",d.note))),o}function c(){t="",e.replaceChildren()}
return{take:n,clear:c}}var Bt={verified:"✓ verified",partial:"◐ partial",no_effect:"○ no effect",fallback:"▲ fallback",failed:"✕ failed",unchecked:"◌ unchecked",off:"off",
not_applicable:"not applicable"};function je(e){let t="",n=!1;function s(f,h){let r=JSON.stringify([f.map(k=>k.ledger),h]);if(r===t)return;if(t=r,e.replaceChildren(),
!h){e.append(w("p","td-empty","Proof that each choice took effect appears here once an arm has finished."));return}let p=w("table",""),m=w("tr",""),a=w("thead",
""),i=w("tbody",""),l=Q("caption","","Ledger");l.append(w("small","",h.line)),p.append(l);for(let k of["Axis","Arm","Requested","Planned","Effective","Status","\
Proof"]){let v=Q("th","",k);v.scope="col",v.role="columnheader",m.append(v)}a.append(m);for(let[k,v]of[[a,"rowgroup"],[i,"rowgroup"],[m,"row"]])k.role=v;let b=[
...new Set(f.flatMap(k=>k.ledger.map(v=>v.axis)))];for(let k of b){let v=d(f,k);v.forEach((x,T)=>{let y=o(x,h.titles[k]||k,T?0:v.length);y.classList.toggle("td-\
quiet",!h.shown.includes(k)),i.append(y)})}let g=w("button","td-all","");g.type="button",g.addEventListener("click",()=>{n=!n,c(p,g,b.length,h)}),p.append(a,i),
e.append(p,g),c(p,g,b.length,h)}function c(f,h,r,p){let m=!n&&!p.shown.length;f.classList.toggle("td-folded",!n),f.classList.toggle("td-none",m),f.role=m?"prese\
ntation":"table",f.querySelector("caption").role=m?null:"caption",h.hidden=p.shown.length===r,M(h,n?"Only what differs or is not verified":"All "+r+" axes with \
their proof"),h.setAttribute("aria-expanded",String(n))}function d(f,h){let r=new Map;for(let p of f)for(let m of p.ledger.filter(a=>a.axis===h)){let a=JSON.stringify(
m);r.has(a)?r.get(a).arms.push(p.name):r.set(a,{...m,arms:[p.name]})}return[...r.values()]}function o(f,h,r){let p=w("tr",f.status);if(p.role="row",r){let i=w("\
th","",h);i.scope="rowgroup",i.rowSpan=r,i.role="rowheader",p.append(i)}let m=w("td","td-who");for(let i of f.arms){let l=w("span","arm-"+i.toLowerCase());l.append(
w("span","td-arm",i)),m.append(l)}p.append(m);for(let i of["requested","planned","effective"]){let l=w("td","td-choice",f[i]);l.dataset.title=i,p.append(l)}p.append(
w("td","td-status",Bt[f.status]||f.status));let a=w("td","td-proof",f.proof);f.reason&&a.append(w("small","",f.reason)),p.append(a);for(let i of p.querySelectorAll(
"td"))i.role="cell";return p}function u(){t="",n=!1,e.replaceChildren()}return{take:s,clear:u}}var Xe={ok:"",note:"Note: ",fallback:"▲ Fallback: ",blocked:"✕ Blocked: "};function Ve(e,t){let n=t.flatMap(c=>[...c.verdicts.filter(d=>d.level!=="ok").map(
d=>({arm:c.name,level:d.level,text:Xe[d.level]+d.reason})),...c.spoilers.map(d=>({arm:c.name,level:"fallback",text:"▲ "+d})),...c.notes.map(d=>({arm:c.name,level:"\
note",text:Xe.note+d}))]),s=JSON.stringify(n);e.dataset.shown!==s&&(e.dataset.shown=s,e.replaceChildren(...n.map(c=>{let d=w("li",c.level+" arm-"+c.arm.toLowerCase());
return d.append(w("span","td-arm",c.arm),document.createTextNode(c.text)),d})))}function Je(){return{steps:{begin:[],end:[],prefill:[],decode:[],idle:[],waiting:[],padding:[]},rows:new Map,moves:{step:[],from:[],to:[],request:[],page:[],group:[]},
parts:0,waits:0,ends:0,tokens:0}}function Ke(e){return[e.steps.end.length,e.waits,e.moves.step.length,e.ends]}function he(e,t){return e.rows.has(t)||e.rows.set(
t,{bars:[],waits:[],tokens:0,prompt:0,end:null,reason:"",text:""}),e.rows.get(t)}function ze(e,t,n){let s=!1,c=e.steps.end.length;if(t.first<=c&&t.n>c){for(let o=c-
t.first;o<t.n-t.first;o++){let u=(o?t.pe[o-1]:t.pfirst)-t.pfirst,f=t.pe[o]-t.pfirst;Dt(e,t,o,u,f)}s=!0}if(t.wfirst<=e.waits&&t.wn>e.waits){for(let o=e.waits-t.wfirst;o<
t.wt.length;o++)he(e,t.wr[o]).waits.push([t.wt[o],t.why[o]]);e.waits=t.wn,s=!0}let d=e.moves.step.length;if(n.length&&t.mfirst<=d&&t.mn>d){for(let o=d-t.mfirst;o<
t.ms.length;o++){let u=n[t.mg[o]].page_bytes;e.moves.step.push(t.ms[o]),e.moves.from.push(t.mp[o]*u),e.moves.to.push((t.mp[o]+1)*u),e.moves.request.push(t.mr[o]),
e.moves.page.push(t.mp[o]),e.moves.group.push(t.mg[o])}s=!0}if(t.efirst<=e.ends&&t.en>e.ends){for(let o=e.ends-t.efirst;o<t.er.length;o++){let u=he(e,t.er[o]);u.
end=t.at[o],u.reason=t.ewhy[o],u.text=t.et[o]}e.ends=t.en,s=!0}return s}function Dt(e,t,n,s,c){let d=t.b[n],o=t.e[n],u=e.steps.end.length,f=[0,0,0],h=0,r=0;for(let a=s;a<
c;a++)t.k[a]===0&&(h++,r+=t.tok[a]);let p=t.pad[n]&&h?(t.pad[n]+r)/h:0;for(let a=s;a<c;a++){let i=t.k[a],l=t.r[a],b=t.tok[a];if(f[i]++,l<0)continue;let g=he(e,l),
k=g.bars[g.bars.length-1];i===0&&(g.prompt+=b),i===1&&(g.tokens++,e.tokens++),k&&k.kind===i&&k.last===u-1&&i!==0?(k.end=o,k.last=u,k.tokens+=b):g.bars.push({kind:i,
begin:d,end:o,last:u,tokens:b,padding:i===0&&p?p-b:0})}let m=e.steps;m.begin.push(d),m.end.push(o),m.prefill.push(f[0]),m.decode.push(f[1]),m.idle.push(f[2]),m.
waiting.push(t.w[n]),m.padding.push(t.pad[n])}function G(e){let t=e.steps.end;return t.length?t[t.length-1]:0}function Qe(e){let t=null,n=!1;for(let s of e?e.bars:[])s.kind===0?t=s.end:n=!0;return n||e&&e.end!==null?t:null}function ge(e){return Qe(e)===null?0:e.tokens+1}
function $e(e){return e&&e.bars.length?e.bars[0].begin:null}function we(e,t,n){return e&&e.end!==null?e.reason==="cancelled"?"cancelled":"done":e&&e.bars.length?
e.bars[e.bars.length-1].kind===0?"prefill":"decode":t>n?"later":"queued"}function Gt(e,t){let n="";for(let[s,c]of e?e.waits:[])(s<=t||!n)&&(n=c);return n}function Ze(e,t,n){
let s=[],c=$e(e),d=c===null?e&&e.end!==null?e.end:n:c;d>t&&s.push({kind:"queued",from:t,to:d});for(let o of e?e.bars:[])if(o.kind===0){let u=o.padding/(o.padding+
o.tokens),f=o.begin+u*(o.end-o.begin);o.padding&&s.push({kind:"padding",from:o.begin,to:f}),s.push({kind:"prefill",from:f,to:o.end})}else s.push({kind:o.kind===
2?"idle":"decode",from:o.begin,to:o.end});return s}function ke(e,t){let n=Qe(e),s=$e(e),c=ge(e),d=e?e.bars.filter(u=>u.kind===0):[],o=e?e.bars.filter(u=>u.kind===
2).reduce((u,f)=>u+f.end-f.begin,0):0;return{waited:s===null?null:Math.max(0,s-t),ttft:n===null?null:n-t,perToken:e&&e.end!==null&&c>1?(e.end-n)/(c-1):null,total:e&&
e.end!==null?e.end-t:null,tokens:c,chunks:d.length,padding:d.reduce((u,f)=>u+f.padding,0),held:o}}function oe(e,t,n,s,c){let d=we(t,n,s),o=ke(t,n),u=[],f=t?[...new Set(
t.waits.map(([,r])=>r))]:[],h=f.length?" for "+f.map(r=>c[r]||r).join(", then for "):"";if(s<=0&&!t)return"Request "+(e+1)+": this arm has not begun";if(d==="la\
ter")return"Request "+(e+1)+": arrives at "+N(n);if(o.waited===null){let r=Gt(t,s);u.push(d==="cancelled"?"cancelled while it waited"+h:"waits"+(r?" for "+(c[r]||
r):""))}else{u.push(o.waited>0&&h?"waited "+N(o.waited)+h:"began at once");let r=o.padding?" and "+R(Math.round(o.padding))+" of padding":"";u.push("prompt of "+
R(t.prompt)+" tokens"+r+(o.chunks>1?" in "+o.chunks+" pieces":"")),o.ttft!==null&&u.push("first token after "+N(o.ttft)),u.push(R(o.tokens)+(o.tokens===1?" toke\
n":" tokens")),o.total!==null&&u.push((d==="cancelled"?"cancelled after ":"done after ")+N(o.total)),o.held>0&&u.push("its slot then idle for "+N(o.held))}return"\
Request "+(e+1)+": "+u.join(", ")}var Ft=240;function et(e,t){if(e<=0)return 1;if(t)return e;let n=10**Math.floor(Math.log10(e));return[1,1.5,2,3,4,5,6,8].map(s=>s*n).find(s=>s>=e*1.02)||10*n}function re(e,t){
let n=e/Math.max(1,t),s=10**Math.floor(Math.log10(n)),c=[1,2,5,10].map(o=>o*s).find(o=>o>=n),d=[];for(let o=0;o*c<=e*1.0001;o++)d.push(Number((o*c).toPrecision(
6)));return d}function tt(e,t,n){let s=new Array(t).fill(0),c=new Array(t).fill(0),d=new Array(t).fill(0),o=n/t;for(let u=0;u<e.end.length;u++){let f=e.prefill[u]+
e.decode[u];for(let h=Math.floor(e.begin[u]/o);h<t&&h*o<e.end[u];h++){let r=Math.max(0,Math.min(e.end[u],(h+1)*o)-Math.max(e.begin[u],h*o))/o;s[h]+=r*f,c[h]+=r*
e.idle[u],d[h]+=r}}return{work:s.map((u,f)=>d[f]?u:null),idle:c}}function $(e,t){let n=0,s=e.begin.length;for(;n<s;){let c=n+s>>1;e.begin[c]<=t?n=c+1:s=c}return n-
1}function nt(e,t){let n=Math.min(...t.map(s=>s.page_bytes));return Math.max(1,Math.min(Ft,Math.round(e/n)))}function ot(e,t,n,s,c){let{moves:d,steps:o}=e,u=new Int32Array(
n*s).fill(-1),f=new Int32Array(n).fill(-1),h=new Int32Array(n),r=new Map,p=G(e),m=0;for(let a=0;a<s;a++){let i=(a+.5)*c/s;if(i>p)break;let l=$(o,i);for(;m<d.step.
length&&d.step[m]<=l;m++){let b=d.group[m]+":"+d.page[m],g=d.request[m],k=r.has(b)?r.get(b):-1;r.set(b,g);let v=Math.floor(d.from[m]/t*n),x=Math.max(v+1,Math.round(
d.to[m]/t*n));for(let T=v;T<Math.min(x,n);T++)h[T]+=+(g>=0)-+(k>=0),f[T]=g>=0?g:h[T]>0?f[T]:-1}u.set(f,a*n)}return u}var P=36,Ht=6;function j(e,t){let n=e.clientWidth,s=window.devicePixelRatio||1;if(!n)return null;e.style.height!==t+"px"&&(e.style.height=t+"px");let c=Math.round(
n*s),d=Math.round(t*s);(e.width!==c||e.height!==d)&&(e.width=c,e.height=d);let o=e.getContext("2d");return o.setTransform(s,0,0,s,0,0),o.clearRect(0,0,n,t),o.font=
"11px "+(D("--font")||"sans-serif"),{pen:o,width:n,height:t,inner:Math.max(1,n-P-Ht)}}function X(e){return{arm:D(e%2?"--arm-b":"--arm-a"),ink:D("--body-text-col\
or"),subdued:D("--body-text-color-subdued"),line:D("--border-color-primary"),band:D("--background-fill-secondary")}}var be=new Map;function se(e,t){if(!be.has(t)){
let n=document.createElement("canvas");n.width=n.height=6;let s=n.getContext("2d");s.strokeStyle=t,s.lineWidth=1.1;for(let c of[-6,0,6])s.beginPath(),s.moveTo(c-
1,7),s.lineTo(c+7,-1),s.stroke();be.set(t,n)}return e.createPattern(be.get(t),"repeat")}function V(e,t,n,s,c){let{pen:d,inner:o}=e;d.strokeStyle=t.line,d.fillStyle=
t.subdued,d.lineWidth=1,d.textBaseline="top";let u=re(n,o/70);u.forEach((f,h)=>{let r=Math.round(P+f/n*o)+.5;d.beginPath(),d.moveTo(r,0),d.lineTo(r,s),d.stroke(),
c&&(d.textAlign=h===u.length-1&&f/n>.95?"right":h?"center":"left",d.fillText(f+(h===u.length-1?" s":""),r,s+3))})}function F(e,t,n,s,c){e.pen.fillStyle=t.subdued,
e.pen.textAlign="right",e.pen.textBaseline=c||"middle",e.pen.fillText(n,P-8,s)}function ie(e,t,n){return(n-P)/e.inner*t}var Ut=300,Wt=15,jt=1,ve=17;function rt(e){return Math.max(jt,Math.min(Wt,Ut/e))}function Xt(e){return Math.ceil(rt(e)*e)+ve}function st(e,t){let{batch:n,asked:s,
now:c,end:d,chosen:o,hovered:u}=t,f=s.arrival_s.length,h=j(e,Xt(f));if(!h)return null;let{pen:r,width:p,inner:m}=h,a=X(t.arm),i=rt(f),l=i*f,b=E=>P+Math.min(1,E/
d)*m;for(let E of new Set([o,u]))E<0||E>=f||(r.fillStyle=a.band,r.fillRect(0,E*i-(i<4?2:0),p,Math.max(i,4)));V(h,a,d,l,!0);let g=se(r,a.subdued),k=i>=5?1:0,v=Math.
max(i-2*k,.8);for(let E=0;E<f;E++){let A=n.rows.get(E),C=E*i+k;for(let I of Ze(A,s.arrival_s[E],c))y(I,C);A&&A.end!==null&&A.reason==="cancelled"&&i>=5&&_(b(A.end),
C+v/2)}let x=Math.max(1,Math.ceil(14/i)),T=x===1?1:re(f,f/x)[1]||f;for(let E=Math.max(1,T===1?1:T);E<=f;E+=T)F(h,a,String(E),(E-.5)*i);return T*i>=24&&F(h,a,"1",
i/2+3),o>=0&&o<f&&(r.fillStyle=a.ink,r.beginPath(),r.moveTo(P-4,(o+.5)*i-4),r.lineTo(P+1,(o+.5)*i),r.lineTo(P-4,(o+.5)*i+4),r.fill()),{...h,high:i,bottom:l};function y(E,A){
let C=b(E.from),I=Math.max(b(E.to)-C,E.kind==="prefill"?1.5:.5);r.globalAlpha=1,E.kind==="queued"?(r.globalAlpha=.5,r.fillStyle=a.subdued,r.fillRect(C,A+v/2-Math.
min(.75,v/4),I,Math.min(1.5,v/2))):E.kind==="idle"||E.kind==="padding"?(r.fillStyle=g,r.fillRect(C,A,I,v),i>=6&&I>3&&(r.strokeStyle=a.subdued,r.lineWidth=.6,r.strokeRect(
C+.3,A+.3,I-.6,v-.6))):(r.fillStyle=E.kind==="prefill"?a.ink:a.arm,r.fillRect(C,A,I,v),E.kind==="prefill"&&I>4&&(r.fillStyle=a.band,r.fillRect(C+I-.7,A,.7,v))),
r.globalAlpha=1}function _(E,A){r.strokeStyle=a.ink,r.lineWidth=1.4,r.beginPath(),r.moveTo(E-3,A-3),r.lineTo(E+3,A+3),r.moveTo(E+3,A-3),r.lineTo(E-3,A+3),r.stroke()}}var it=62;function at(e,{batch:t,slots:n,end:s,arm:c}){let d=j(e,it);if(!d)return null;let{pen:o,inner:u}=d,f=X(c),h=it-2,r=6,p=Math.round(u);V(d,f,s,h,!1);let m=l=>h-
l/n*(h-r),a=tt(t.steps,p,s),i=se(o,f.subdued);for(let l=0;l<p;l++)a.work[l]!==null&&(o.fillStyle=f.arm,o.fillRect(P+l,m(a.work[l]),1,h-m(a.work[l])),a.idle[l]&&
(o.fillStyle=i,o.fillRect(P+l,m(a.work[l]+a.idle[l]),1,m(a.work[l])-m(a.work[l]+a.idle[l]))));return o.strokeStyle=f.subdued,o.setLineDash([3,3]),o.beginPath(),
o.moveTo(P,Math.round(m(n))+.5),o.lineTo(P+u,Math.round(m(n))+.5),o.stroke(),o.setLineDash([]),F(d,f,String(n),m(n)),F(d,f,"0",h,"bottom"),d}function lt(e,t,n){
let s=$(e.steps,n),{steps:c}=e;if(s<0||n>G(e))return"";let d=[["prefill",c.prefill],["decode",c.decode],["idle",c.idle]].filter(([,u])=>u[s]).map(([u,f])=>f[s]+
" "+u),o=c.waiting[s]?"; "+R(c.waiting[s])+" waiting":"";return"Step "+R(s+1)+" at "+N(c.begin[s])+": "+(d.join(", ")||"no request")+" of "+t+" slots"+o}var U=110,dt=[.9,.45,.7,.3,.58];function ft(e,{batch:t,pages:n,cacheBytes:s,end:c,chosen:d,arm:o}){let u=j(e,U+ve);if(!u)return null;let{pen:f,inner:h}=u,r=X(o),
p=nt(s,n),m=Math.max(1,Math.round(h)),a=ot(t,s,p,m,c),[i,l,b]=ct(r.arm),g=ct(r.ink);f.fillStyle=r.band,f.fillRect(P,0,h,U);let k=document.createElement("canvas");
k.width=m,k.height=p;let v=k.getContext("2d"),x=v.createImageData(m,p);for(let y=0;y<m;y++)for(let _=0;_<p;_++){let E=a[y*p+_],A=4*(_*m+y);if(E<0)continue;let C=E===
d;x.data[A]=C?g[0]:i,x.data[A+1]=C?g[1]:l,x.data[A+2]=C?g[2]:b,x.data[A+3]=C?255:Math.round(255*dt[E%dt.length])}v.putImageData(x,0,0),f.imageSmoothingEnabled=!1,
f.drawImage(k,P,0,h,U);let T=U/p;if(T>=5){f.fillStyle=D("--body-background-fill");for(let y=1;y<p;y++)f.fillRect(P,Math.round(y*T)-.5,h,1)}return V(u,{...r,line:"\
transparent"},c,U,!0),F(u,r,"1",1,"top"),p>1&&F(u,r,R(Vt(n,s)),U,"bottom"),{...u,map:a,lines:p,columns:m}}function Vt(e,t){return Math.round(t/Math.min(...e.map(
n=>n.page_bytes)))}function ut(e,t,n,s){let c=ie(e,t.end,n),d=$(t.batch.steps,c),o=Math.floor((n-P)/e.inner*e.columns),u=Math.floor(s/U*e.lines);if(d<0||o<0||o>=
e.columns||u<0||u>=e.lines||c>G(t.batch))return"";let f=e.map.subarray(o*e.lines,(o+1)*e.lines),h=f[u],r=f.reduce((p,m)=>p+ +(m>=0),0);return"Step "+R(d+1)+" at\
 "+N(c)+": "+Math.round(100*r/e.lines)+"% held; here "+(h<0?"free":"request "+(h+1))}function ct(e){let t=document.createElement("canvas").getContext("2d",{willReadFrequently:!0});
return t.fillStyle=e,t.fillRect(0,0,1,1),[...t.getImageData(0,0,1,1).data].slice(0,3)}var Jt=[["queued","waits"],["prefill","prefill"],["decode","decode"],["idle","idle slot or padding"],["cancelled","cancelled"]];function pt(e,t,n){let s=[];function c(i){
e.replaceChildren(),s=i.arms.map((l,b)=>{let g=w("section","td-lane arm-"+l.name.toLowerCase()),k=w("h3","","");k.append(w("span","td-arm",l.name),w("b","",l.kind),
document.createTextNode(" "),d());let v=o("Slots at work","of "+i.slots+", by step"),x=o("Requests","by arrival, over seconds"),T=o("KV pages",l.kind==="continu\
ous"?"who holds them, over seconds":"");x.canvas.tabIndex=0,x.canvas.setAttribute("role","application"),x.canvas.setAttribute("aria-label","Gantt chart of the r\
equests of arm "+l.name+". Arrow keys choose a request, which is described below; the table of requests holds the same."),v.canvas.setAttribute("role","img"),v.
canvas.setAttribute("aria-label","Slots at useful work and idle slots of arm "+l.name+" by step; the figures above give their share."),T.canvas.setAttribute("ro\
le","img"),T.canvas.setAttribute("aria-label","Map of the KV pages of arm "+l.name+" by step: free, or held by which request."),T.figure.classList.toggle("td-ma\
p",l.kind==="continuous");let y=w("p","td-empty","");T.figure.append(y),g.append(k,v.figure,x.figure,T.figure),e.append(g);let _={i:b,slots:v,gantt:x,pages:T,none:y,
fields:{},view:null,hovered:-1};return u(_),_})}function d(){let i=w("span","td-legend");for(let[l,b]of Jt){let g=w("span","");g.append(w("i","td-key "+l),document.
createTextNode(b)),i.append(g)}return i}function o(i,l){let b=w("div","td-strip"),g=w("p","td-caption",""),k=w("canvas","");return g.append(w("b","",i),document.
createTextNode(" "+l)),b.append(g,k),{figure:b,canvas:k,caption:g}}function u(i){let l=(b,g)=>{let{canvas:k}=i[b];k.addEventListener("pointermove",v=>{let x=k.getBoundingClientRect(),
T=v.clientX-x.left,y=v.clientY-x.top;r(v,i.fields[b]&&i.view?g(T,y):"")}),k.addEventListener("pointerleave",()=>{t.hidden=!0,i.hovered>=0&&(i.hovered=-1,p(i))})};
l("slots",b=>lt(i.view.batch,i.view.slots,ie(i.fields.slots,i.view.end,b))),l("pages",(b,g)=>ut(i.fields.pages,i.view,b,g)),l("gantt",(b,g)=>{let k=f(i,g);return k!==
i.hovered&&(i.hovered=k,p(i)),k<0?"":h(i,k)}),i.gantt.canvas.addEventListener("click",b=>{let g=f(i,b.clientY-i.gantt.canvas.getBoundingClientRect().top);g>=0&&
n(g)}),i.gantt.canvas.addEventListener("keydown",b=>{if(!i.view)return;let g=i.view.asked.arrival_s.length-1,k=i.view.chosen,v={ArrowDown:k+1,ArrowUp:k-1,PageDown:k+
10,PageUp:k-10,Home:0,End:g}[b.key];v!==void 0&&(b.preventDefault(),n(Math.max(0,Math.min(g,v))))})}function f(i,l){let{gantt:b}=i.fields;return!b||l>=b.bottom?
-1:Math.max(0,Math.min(i.view.asked.arrival_s.length-1,Math.floor(l/b.high)))}function h(i,l){let{batch:b,asked:g,now:k,waits:v}=i.view;return oe(l,b.rows.get(l),
g.arrival_s[l],k,v)}function r(i,l){if(t.hidden=!l,!l)return;M(t,l);let b=e.getBoundingClientRect(),g=Math.min(360,b.width-8);t.style.maxWidth=g+"px";let k=Math.
min(i.clientX-b.left+14,b.width-t.offsetWidth-4);t.style.left=Math.max(0,k)+"px",t.style.top=i.clientY-b.top+18+"px"}function p(i){let{view:l}=i;l&&(i.fields.slots=
at(i.slots.canvas,l),i.fields.gantt=st(i.gantt.canvas,{...l,hovered:i.hovered}),i.pages.canvas.hidden=!l.pages.length,M(i.none,l.pages.length?"":l.paged?"The pa\
ges appear when the run begins.":"No pages: each static batch has one padded cache, as long as its longest request."),l.pages.length&&(i.fields.pages=ft(i.pages.
canvas,l)))}function m(i){s.forEach((l,b)=>{l.view=i[b],p(l)})}function a(){s=[],e.replaceChildren(),t.hidden=!0}return{build:c,paint:m,clear:a}}function mt(e,t){let n=Math.min(e.length,t.length);for(let s=0;s<n;s++)if(e.charCodeAt(s)!==t.charCodeAt(s))return s;return-1}function ht(e,t){let n=[],s=null,c=null;function d(h,r){e.replaceChildren();let p=w("p","td-which",""),m=w("label","","Request ");s=w("input","td-number"),Object.
assign(s,{type:"number",min:1,max:r,value:1}),s.addEventListener("input",()=>{let a=Math.round(Number(s.value));a>=1&&a<=r&&t(a-1)}),m.append(s,document.createTextNode(
" of "+R(r))),c=w("span","td-same-tokens",""),p.append(m,c),e.append(p),n=h.arms.map(a=>{let i=w("section","arm-"+a.name.toLowerCase()),l=w("p","td-words",""),b=w(
"div","td-body",""),g=w("span","","");l.append(w("span","td-arm",a.name),g),l.setAttribute("role","status");let k=w("div","td-scroll");return k.tabIndex=0,k.setAttribute(
"role","region"),k.setAttribute("aria-label","Text of the chosen request in arm "+a.name),k.append(b),i.append(l,k),e.append(i),{line:g,body:b,shown:""}})}function o(h,r,p){
if(!s)return;document.activeElement!==s&&Number(s.value)!==p+1&&(s.value=p+1);let m=h.map(g=>g.batch.rows.get(p)),a=m.map(g=>g?g.text:""),i=m.length>1&&m.every(
g=>g&&g.end!==null),l=i?mt(a[0],a[1]):-1,b=r.differ[p];M(c,!i||m.some(g=>g.reason==="cancelled")?"":b===void 0?"Both arms gave it the same tokens.":"The arms di\
ffer from its token "+R(b)+" on (counted from 0)."),h.forEach((g,k)=>{M(n[k].line,oe(p,m[k],g.asked.arrival_s[p],g.now,g.waits));let v=JSON.stringify([a[k],l,p]);
n[k].shown!==v&&(n[k].shown=v,u(n[k].body,a[k],l))})}function u(h,r,p){if(h.replaceChildren(),!r){h.append(w("span","td-empty","Its text appears when it is done\
."));return}if(p<0){h.append(document.createTextNode(r));return}let m=w("span","td-divergent"),a=w("mark","td-difference","≠");a.title="The texts differ from \
here on.",m.append(document.createTextNode(r.slice(p))),h.append(document.createTextNode(r.slice(0,p)),a,m)}function f(){e.replaceChildren(),n=[],s=c=null}return{
build:d,show:o,clear:f}}var gt=(e,t)=>{let n=!1,s=!1,c=()=>{n=!0},d=()=>{n&&(n=!1,setTimeout(()=>{s&&!n&&(s=!1,t())}))};e.addEventListener("pointerdown",o=>{o.button===0&&c()}),e.addEventListener(
"keydown",o=>{o.key===" "&&c()});for(let o of["pointerup","pointercancel","keyup","blur"])window.addEventListener(o,d);return()=>{n?s=!0:t()}};var Kt={later:"not yet arrived",queued:"waits",prefill:"prefill",decode:"decode",done:"done",cancelled:"cancelled"};function wt(e,t,n){let s=null,c="",d=0,o=gt(
t,f);e.addEventListener("toggle",()=>{d=0,f()});function u(a,i,l){s={views:a,head:i,over:l},o()}function f(){if(!s||!e.open||!s.over&&performance.now()-d<1e3)return;
d=performance.now();let{views:a,head:i}=s,{asked:l}=a[0],b=a.length>1,g=l.arrival_s.map((A,C)=>r(a,i,C,b)),k=JSON.stringify(g);if(k===c)return;c=k;let v=w("tabl\
e",""),x=w("thead",""),T=w("tr",""),y=w("tbody",""),_=["Request","Arrives","Prompt","New tokens"],E=["state","waited","for","TTFT","per token","end to end","tok\
ens"];for(let A of _)T.append(h(A));for(let A of i.arms)for(let C of E)T.append(h(A.name+" "+C));b&&T.append(h("Same tokens")),x.append(T),g.forEach((A,C)=>{let I=w(
"tr","");A.forEach((ue,Ct)=>{if(Ct){I.append(w("td","",ue));return}let pe=w("th",""),ee=w("button","td-pick",ue);pe.scope="row",ee.type="button",ee.setAttribute(
"aria-label","Show request "+ue),ee.addEventListener("click",()=>n(C)),pe.append(ee),I.append(pe)}),y.append(I)}),v.append(x,y),t.replaceChildren(v)}function h(a){
let i=w("th","",a);return i.scope="col",i}function r(a,i,l,b){let{asked:g}=a[0],k=[String(l+1),N(g.arrival_s[l]),R(g.prompt_tokens[l]),R(g.max_new_tokens[l])],v=a.
every(x=>x.batch.rows.get(l)?.end!=null);for(let{batch:x,now:T,waits:y}of a){let _=x.rows.get(l),E=g.arrival_s[l],A=ke(_,E),C=_?[...new Set(_.waits.map(([,I])=>y[I]||
I))]:[];k.push(Kt[we(_,E,T)],p(A.waited),C.join(", then "),p(A.ttft),p(A.perToken),p(A.total),R(A.tokens))}return b&&k.push(v?i.differ[l]===void 0?"yes":"until \
token "+i.differ[l]:""),k}function p(a){return a===null?"–":a<1?(1e3*a).toPrecision(3)+" ms":N(a)}function m(){s=null,c="",t.replaceChildren()}return{take:u,clear:m}}var zt="drawn slowly while this machine's own cores are measured",Yt="Press Run: arm A serves all requests first, then arm B serves the same ones. When each req\
uest waits, is processed and ends, which slots stand idle and who holds which page of the KV cache appear here, with proof that each choice took effect.",Le=pt(
L(".td-lanes"),L(".td-tip"),fe),Te=ht(L(".td-chosen"),fe),kt=wt(L(".td-requests"),L(".td-request-rows"),fe),Z=Be(L(".td-progress")),bt=De(L(".td-sentence"),L(".\
td-basis"),L(".td-digest"),L(".td-unasked")),vt=Ue(L(".td-tiles")),xt=We(L(".td-rows")),Mt=je(L(".td-ledger")),B=[],S=null,J=null,H="",Ee=-1,Lt=0,xe=0,W=!1,le=0,
de=!1,Me=0,Se=0,ae=qe(Qt,$t,e=>M(L(".td-connection"),e));async function Qt(){let e=++Lt,t=H,n=B.length?B.map(Ke):[[0,0,0,0],[0,0,0,0]],s=JSON.parse(await server.
pull({run:t,version:Ee,cur:n}));return s.seq=e,s}function $t(e){if(e.error)return _e(H,e.error),"over";if(e.run!==H||W)return W?"over":"wait";if(e.head&&e.seq>xe&&
(xe=e.seq,Zt(e)),!S)return"wait";Re(e.status,e.queue),Ne(e.trouble),ae.atLeast(e.every_ms);let t=!1;e.lanes.forEach((o,u)=>{t=ze(B[u],o,S.arms[u].pages)||t}),(t||
e.head)&&(de=!0);let[n,s,c]=settings.most,d=o=>o.n-o.first>=n||o.mn-o.mfirst>=s||o.en-o.efirst>=c;return e.ended?(tn(e),"over"):t&&e.lanes.some(d)?"more":"wait"}
function Zt(e){let t=!S;S=e.head,Ee=e.version,J=S.asked||J,t&&(B=S.arms.map(Je),Le.build(S),Te.build(S,J.arrival_s.length),Z.build(S.arms),M(L(".td-empty-run"),
""),K(!1)),M(L(".td-title"),S.title),M(L(".td-note"),S.note),M(L(".td-traffic"),S.traffic),Z.take(S),bt.take(S,e.status),window.tokendynoAddress?.title("batchin\
g",S.heading),M(L(".td-why"),S.why),vt.take(S.arms,S.differences),xt.take(S.arms),Mt.take(S.arms,S.digest),Ve(L(".td-remarks"),S.arms);let n=Ie(e.status,S.message);
K(n&&!B.some(s=>s.steps.end.length)),Tt(e.ended)}function Tt(e){let t=!e&&S.quiet&&Ce;ae.every(t?400:80),Et=t?1e3:80,M(L(".td-pace"),t?zt:"")}var Et=80;function en(){
let e=Math.max(...B.map(G),J.arrival_s[0]),t=et(e,W);return B.map((n,s)=>({batch:n,asked:J,now:G(n),end:t,chosen:le,arm:s,slots:S.slots,waits:S.waits,pages:S.arms[s].
pages,cacheBytes:S.arms[s].cache_bytes,paged:S.arms[s].kind==="continuous"}))}function ce(){let e=performance.now(),t=en();de=!1,Le.paint(t),Te.show(t,S,le),kt.
take(t,S,W),Me=performance.now(),Se=Me-e}function fe(e){le=e,S&&ce()}function tn(e){W=!0,Tt(!0),Z.tick(St(),!0),ce(),element.dataset.over=e.run,trigger("finishe\
d",{run:e.run,status:e.status})}function St(){return B.map(e=>{let t=0;for(let n of e.rows.values())t+=ge(n);return{t:{length:t}}})}function At(e){if(H=e||"",B=
[],S=null,J=null,Ee=-1,xe=Lt,W=!1,le=0,Pe(H,["traffic","pace","why"]),window.dispatchEvent(new Event("tokendyno-run")),window.tokendynoAddress?.title("batching",
""),bt.clear(),vt.clear(),xt.clear(),Mt.clear(),Z.clear(),Le.clear(),Te.clear(),kt.clear(),M(L(".td-empty-run"),H?"":Yt),K(!0),Oe(H),!H){ae.stop();return}ae.begin()}
function yt(){element.isConnected&&(S&&!W&&!document.hidden&&Z.tick(St()),S&&de&&!document.hidden&&performance.now()-Me>Math.max(Et,4*Se)&&ce(),setTimeout(yt,100))}
Ae(()=>{de=!0});new ResizeObserver(()=>{S&&ce()}).observe(element);element.classList.add("td-batch");element.batch={get batches(){return B},get head(){return S},
get paintMs(){return Se},choose:fe};watch("value",()=>{(props.value||"")!==H&&At(props.value)});At(props.value);yt();})();
