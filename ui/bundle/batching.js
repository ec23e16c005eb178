"use strict";(()=>{var ve=e=>{new MutationObserver(()=>e()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};function w(e,t,n){let s=document.createElement(e);return t&&(s.className=t),n!==void 0&&(s.textContent=n),s}function Me(e,t){let n=w("tr","");n.append(w("th","",
e),...t.map(s=>{let d=w("th","arm-"+s.name.toLowerCase());return d.append(w("span","td-arm",s.name)),d}));for(let s of n.querySelectorAll("th"))s.scope="col";return n}
function M(e,t){e.textContent!==t&&(e.textContent=t)}function L(e){return element.querySelector(e)}function q(e){return getComputedStyle(element).getPropertyValue(
e).trim()}function y(e){return e.toLocaleString("en-US")}function N(e){return e>=100?Math.round(e)+" s":e.toFixed(e>=10?1:2)+" s"}var vt={queued:"Queued",running:"Running",done:"Done",failed:"Failed",cancelled:"Stopped",interrupted:"Interrupted"},Le=/^(localhost|127(\.\d+){3}|\[::1\])$/.test(
location.hostname);function Te(e,t){M(L(".td-status"),vt[e]||e),e==="queued"&&t&&M(L(".td-message"),t),element.dataset.status=e}function V(e){element.classList.
toggle("td-bare",e)}function Se(e,t){for(let n of["status","empty-run"])M(L(".td-"+n),"");M(L(".td-failure"),t),V(!0),trigger("finished",{run:e,status:"unknown"})}
function Ee(e,t){for(let n of["status","over"])delete element.dataset[n];element.dataset.run=e;for(let n of["status","title","note","failure","message","connect\
ion","unkept",...t])M(L(".td-"+n),"");L(".td-remarks").replaceChildren(),delete L(".td-remarks").dataset.shown}function Ae(e){M(L(".td-unkept"),e?"▲ "+e:"")}function Ce(e,t){
let n=e==="failed"||e==="interrupted";return M(L(".td-failure"),n?t||"The run ended unexpectedly.":""),M(L(".td-message"),n?"":t),n}function Y(e){return L(e)}function Re(e){
if(L(".td-link").hidden=L(".td-files").hidden=!e,!e)return;let t=new URL(location.href);t.search="?"+new URLSearchParams({run:e}),t.hash="",Y(".td-permalink").href=
t.href,M(L(".td-permalink"),t.search),Y(".td-kept").href="?"+new URLSearchParams({view:"history",q:e}),L(".td-kept").hidden=e.startsWith("recorded-");for(let d of[
"dyno","html","json"])Y(".td-file-"+d).href="files/"+encodeURIComponent(e)+"."+d;L(".td-file-html").hidden=!L(".td-plot");let n=new URL(location.href),s=n.searchParams.
get("view")||window.tokendynoAddress?.page;if(s&&s!=="compare"&&s!=="batching"){window.tokendynoAddress?.note(element.closest("#batch-live")?"batching":"compare",
e);return}n.searchParams.set("run",e);for(let d of["worth","sweep"])n.searchParams.delete(d);n.href!==location.href&&history.replaceState(history.state,"",n.href)}
async function Mt(){let{href:e}=Y(".td-permalink");try{await navigator.clipboard.writeText(e),M(L(".td-copied"),"Copied")}catch{window.prompt("Copy this link:",
e)}setTimeout(()=>M(L(".td-copied"),""),2e3)}L(".td-copy").addEventListener("click",Mt);var Lt=3,Tt=8e3;function ye(e,t,n){let s=60,d=0,c=!1,r=0,f=0,u=0,h=0,o=!1,p=!1;function m(b){return new Promise((g,k)=>{let x=setTimeout(()=>k(new Error("no ans\
wer")),Tt);b.then(v=>{clearTimeout(x),g(v)},v=>{clearTimeout(x),k(v)})})}async function i(){let b=h;r++;try{let g="more";for(;g==="more";){let k=await m(e());if(b!==
h)return;p=!0,f&&(f=0,u=0,n("")),g=t(k)}g==="over"&&(o=!1)}catch{if(b!==h||!o)return;f++;let g=Math.min(1e4,250*2**f);u=performance.now()+g,n("The server does n\
ot answer. Retrying in "+N(g/1e3)+"; nothing is lost.")}finally{r--}}async function a(){if(!element.isConnected)return;let b=f||!p||c?1:Lt,g=o&&!document.hidden&&
r<b&&performance.now()>=u,k=g&&i();c&&await k,setTimeout(a,Math.max(s,d))}setTimeout(a,0),document.addEventListener("visibilitychange",()=>{!document.hidden&&element.
isConnected&&o&&r===0&&(u=0,i())});function l(){h++,f=0,u=0,p=!1,o=!0,n(""),document.hidden||i()}return{begin:l,stop(){h++,o=!1},every(b,g=!1){s=b,c=g},atLeast(b){
d=b},get running(){return o}}}function _e(e){let t=null,n=[],s=0;function d(o){e.replaceChildren(),n=o.map(p=>{let m=w("div","td-phases arm-"+p.name.toLowerCase()),i=w("span","td-steps"),a=w(
"i","td-phase-bar");return m.append(w("span","td-arm",p.name),w("b","td-label",p.label),i,a),e.append(m),{steps:i,bar:a,chips:new Map}})}function c(o,p,m){let i=o.
state==="begin"||o.state==="step",a=o.title+" "+N(i?Math.max(o.seconds,p-o.begin_s):o.seconds);return o.name==="run"&&!(t.quality&&!m)?a+=", "+y(m)+" of "+y(t.max_new_tokens)+
(t.unit==="forward"?" passes":" tokens"):i&&o.fraction!==null&&(a+=", "+Math.round(100*o.fraction)+"%"),o.wait&&(a+=", "+o.wait),i&&o.note&&(a+=" ("+o.note+")"),
o.state==="broken"?"✕ "+a:a}function r(o,p){return o.expected_s?Math.min(.95,(p-o.begin_s)/o.expected_s):0}function f(o,p){if(!t)return;let m=t.now_s+(performance.
now()-s)/1e3;t.arms.forEach((i,a)=>{let l=n[a];if(!i.phases.length){M(l.steps,p?"did not run":a?"waiting for arm "+t.arms[a-1].name:"waiting");return}l.chips.size||
l.steps.replaceChildren();for(let x of i.phases){let v=l.chips.get(x.name);v||(v=w("span",""),l.chips.set(x.name,v),l.steps.append(v));let T="td-step "+x.state;
v.className!==T&&(v.className=T),M(v,c(x,m,o[a].t.length))}let b=i.phases[i.phases.length-1],g=b.name==="run"?o[a].t.length/t.max_new_tokens:b.fraction||r(b,m),
k=i.state==="working"?(100*Math.min(1,g)).toFixed(1)+"%":"0";l.bar.style.width!==k&&(l.bar.style.width=k)})}function u(o){t=o,s=performance.now()}function h(){t=
null,n=[],e.replaceChildren()}return{build:d,take:u,tick:f,clear:h}}function Pe(e,t,n,s,d,c){function r(o,p){M(e,u(o,p)),e.classList.toggle("td-underway",!o.verdict.sentence),M(t,o.verdict.basis),M(s,o.verdict.unasked),c&&M(c,o.
verdict.pays),f(o.verdict),n.hidden=!o.digest,o.digest&&(n.className="td-digest "+o.digest.status,M(n,o.digest.line))}function f({gate:o,gate_run:p}){!d||d.textContent===
(o||"")||(d.replaceChildren(),d.title=o||"",o&&(p?d.append(Object.assign(w("a","td-gate-line",o),{href:"?"+new URLSearchParams({run:p})})):d.append(w("span","td\
-gate-line",o))))}function u(o,p){if(o.verdict.sentence)return o.verdict.sentence;if(p==="queued")return"Waiting for the runs before this one.";if(p!=="running")
return p==="done"?"The run is complete.":p==="cancelled"?"Stopped before both arms were complete: no verdict.":"";let m=o.arms.find(l=>l.state==="working");if(!m)
return"Starting.";let i=o.arms.filter(l=>l.state==="waiting").map(l=>l.name),a=m.phases.at(-1);return"Running arm "+m.name+(a?": "+a.title:"")+(i.length?"; then\
 arm "+i.join(" and ")+".":".")}function h(){M(e,""),M(t,""),M(s,""),c&&M(c,""),f({gate:"",gate_run:""}),n.hidden=!0}return{take:r,clear:h}}function Ne(e){let t=new Map,n="";function s(f,u){let h=[...new Map(f.flatMap(p=>p.tiles.map(m=>[m.key,m.label])))],o=JSON.stringify([h,f.map(p=>p.name)]);n!==o&&
c(h,f,o);for(let[p]of h){let m=f.map(v=>v.tiles.find(T=>T.key===p)),{card:i,values:a,unit:l,foot:b}=t.get(p),g=[...new Set(m.map(v=>v&&v.unit).filter(Boolean))],
k=g.length===1;a.forEach((v,T)=>{let C=m[T],_=C&&C.value!=="n/a";M(v.number,_?C.value:"–"),M(v.unit,_&&!k&&C.unit?" "+C.unit:"")}),M(l,k?g[0]:"");let x=u[p];M(
b,x?x.text:d(m.map(v=>v?v.note:""))),b.className="td-foot"+(x&&x.better?" better":""),i.title=m.map((v,T)=>v&&v.note?f[T].name+": "+v.value+" "+v.unit+", "+v.note:
"").filter(Boolean).join(`
`)}}function d(f){let[u,...h]=new Set(f.filter(Boolean)),o=f.every(Boolean);return u&&!h.length&&(o||!/\d/.test(u))?u:""}function c(f,u,h){e.replaceChildren(),t=
new Map,n=h;for(let[o,p]of f){let m=w("div","td-tile"),i=w("p","td-figure"),a=w("span","td-unit",""),l=w("small","td-foot","");m.dataset.key=o;let b=u.map(g=>{let k=w(
"b","arm-"+g.name.toLowerCase()),x=w("span","",""),v=w("small","","");return k.append(x,v),i.append(w("span","td-hidden","Arm "+g.name+": "),k),{number:x,unit:v}});
i.append(a),m.append(w("h3","",p),i,l),e.append(m),t.set(o,{card:m,values:b,unit:a,foot:l})}}function r(){for(let{card:f,values:u,unit:h,foot:o}of t.values())f.
title="",u.forEach(p=>{M(p.number,"–"),M(p.unit,"")}),M(h,""),M(o,"")}return{take:s,clear:r}}function Ie(e){let t="";function n(c){let r=c.filter(m=>m.details.length),f=JSON.stringify(r.map(m=>[m.name,m.details]));if(f===t)return;if(t=f,e.replaceChildren(),
!r.length){e.append(w("p","td-empty","Percentiles, intervals and readings of the machine appear here once an arm has finished."));return}let u=w("table",""),h=w(
"thead",""),o=w("tbody","");h.append(Me("Figure",r));let p=new Map(r.flatMap(m=>m.details.map(i=>[i.key,i.label])));for(let[m,i]of p){let a=w("tr",""),l=w("th",
"",i);l.scope="row",a.dataset.key=m,a.append(l,...r.map(b=>s(b.details.find(g=>g.key===m)))),o.append(a)}u.append(h,o),e.append(u)}function s(c){let r=w("td","");
return c&&(r.append(w("b","",c.value),document.createTextNode(c.unit?" "+c.unit:"")),c.note&&r.append(w("small","",c.note))),r}function d(){t="",e.replaceChildren()}
return{take:n,clear:d}}var St={verified:"✓ verified",partial:"◐ partial",no_effect:"○ no effect",fallback:"▲ fallback",failed:"✕ failed",unchecked:"◌ unchecked",off:"off",
not_applicable:"not applicable"};function Oe(e){let t="",n=!1;function s(u,h){let o=JSON.stringify([u.map(k=>k.ledger),h]);if(o===t)return;if(t=o,e.replaceChildren(),
!h){e.append(w("p","td-empty","Proof that each choice took effect appears here once an arm has finished."));return}let p=w("table",""),m=w("tr",""),i=w("thead",
""),a=w("tbody",""),l=w("caption","","Ledger");l.append(w("small","",h.line)),p.append(l);for(let k of["Axis","Arm","Requested","Planned","Effective","Status","\
Proof"]){let x=w("th","",k);x.scope="col",x.role="columnheader",m.append(x)}i.append(m);for(let[k,x]of[[i,"rowgroup"],[a,"rowgroup"],[m,"row"]])k.role=x;let b=[
...new Set(u.flatMap(k=>k.ledger.map(x=>x.axis)))];for(let k of b){let x=c(u,k);x.forEach((v,T)=>{let C=r(v,h.titles[k]||k,T?0:x.length);C.classList.toggle("td-\
quiet",!h.shown.includes(k)),a.append(C)})}let g=w("button","td-all","");g.type="button",g.addEventListener("click",()=>{n=!n,d(p,g,b.length,h)}),p.append(i,a),
e.append(p,g),d(p,g,b.length,h)}function d(u,h,o,p){let m=!n&&!p.shown.length;u.classList.toggle("td-folded",!n),u.classList.toggle("td-none",m),u.role=m?"prese\
ntation":"table",h.hidden=p.shown.length===o,M(h,n?"Only what differs or is not verified":"All "+o+" axes with their proof"),h.setAttribute("aria-expanded",String(
n))}function c(u,h){let o=new Map;for(let p of u)for(let m of p.ledger.filter(i=>i.axis===h)){let i=JSON.stringify(m);o.has(i)?o.get(i).arms.push(p.name):o.set(
i,{...m,arms:[p.name]})}return[...o.values()]}function r(u,h,o){let p=w("tr",u.status);if(p.role="row",o){let a=w("th","",h);a.scope="rowgroup",a.rowSpan=o,a.role=
"rowheader",p.append(a)}let m=w("td","td-who");for(let a of u.arms){let l=w("span","arm-"+a.toLowerCase());l.append(w("span","td-arm",a)),m.append(l)}p.append(m);
for(let a of["requested","planned","effective"]){let l=w("td","td-choice",u[a]);l.dataset.title=a,p.append(l)}p.append(w("td","td-status",St[u.status]||u.status));
let i=w("td","td-proof",u.proof);u.reason&&i.append(w("small","",u.reason)),p.append(i);for(let a of p.querySelectorAll("td"))a.role="cell";return p}function f(){
t="",n=!1,e.replaceChildren()}return{take:s,clear:f}}var qe={ok:"",note:"Note: ",fallback:"▲ Fallback: ",blocked:"✕ Blocked: "};function Be(e,t){let n=t.flatMap(d=>[...d.verdicts.filter(c=>c.level!=="ok").map(
c=>({arm:d.name,level:c.level,text:qe[c.level]+c.reason})),...d.spoilers.map(c=>({arm:d.name,level:"fallback",text:"▲ "+c})),...d.notes.map(c=>({arm:d.name,level:"\
note",text:qe.note+c}))]),s=JSON.stringify(n);e.dataset.shown!==s&&(e.dataset.shown=s,e.replaceChildren(...n.map(d=>{let c=w("li",d.level+" arm-"+d.arm.toLowerCase());
return c.append(w("span","td-arm",d.arm),document.createTextNode(d.text)),c})))}function De(){return{steps:{begin:[],end:[],prefill:[],decode:[],idle:[],waiting:[],padding:[]},rows:new Map,moves:{step:[],from:[],to:[],request:[],page:[],group:[]},
parts:0,waits:0,ends:0,tokens:0}}function Fe(e){return[e.steps.end.length,e.waits,e.moves.step.length,e.ends]}function de(e,t){return e.rows.has(t)||e.rows.set(
t,{bars:[],waits:[],tokens:0,prompt:0,end:null,reason:"",text:""}),e.rows.get(t)}function Ge(e,t,n){let s=!1,d=e.steps.end.length;if(t.first<=d&&t.n>d){for(let r=d-
t.first;r<t.n-t.first;r++){let f=(r?t.pe[r-1]:t.pfirst)-t.pfirst,u=t.pe[r]-t.pfirst;Et(e,t,r,f,u)}s=!0}if(t.wfirst<=e.waits&&t.wn>e.waits){for(let r=e.waits-t.wfirst;r<
t.wt.length;r++)de(e,t.wr[r]).waits.push([t.wt[r],t.why[r]]);e.waits=t.wn,s=!0}let c=e.moves.step.length;if(n.length&&t.mfirst<=c&&t.mn>c){for(let r=c-t.mfirst;r<
t.ms.length;r++){let f=n[t.mg[r]].page_bytes;e.moves.step.push(t.ms[r]),e.moves.from.push(t.mp[r]*f),e.moves.to.push((t.mp[r]+1)*f),e.moves.request.push(t.mr[r]),
e.moves.page.push(t.mp[r]),e.moves.group.push(t.mg[r])}s=!0}if(t.efirst<=e.ends&&t.en>e.ends){for(let r=e.ends-t.efirst;r<t.er.length;r++){let f=de(e,t.er[r]);f.
end=t.at[r],f.reason=t.ewhy[r],f.text=t.et[r]}e.ends=t.en,s=!0}return s}function Et(e,t,n,s,d){let c=t.b[n],r=t.e[n],f=e.steps.end.length,u=[0,0,0],h=0,o=0;for(let i=s;i<
d;i++)t.k[i]===0&&(h++,o+=t.tok[i]);let p=t.pad[n]&&h?(t.pad[n]+o)/h:0;for(let i=s;i<d;i++){let a=t.k[i],l=t.r[i],b=t.tok[i];if(u[a]++,l<0)continue;let g=de(e,l),
k=g.bars[g.bars.length-1];a===0&&(g.prompt+=b),a===1&&(g.tokens++,e.tokens++),k&&k.kind===a&&k.last===f-1&&a!==0?(k.end=r,k.last=f,k.tokens+=b):g.bars.push({kind:a,
begin:c,end:r,last:f,tokens:b,padding:a===0&&p?p-b:0})}let m=e.steps;m.begin.push(c),m.end.push(r),m.prefill.push(u[0]),m.decode.push(u[1]),m.idle.push(u[2]),m.
waiting.push(t.w[n]),m.padding.push(t.pad[n])}function B(e){let t=e.steps.end;return t.length?t[t.length-1]:0}function Ue(e){let t=null,n=!1;for(let s of e?e.bars:[])s.kind===0?t=s.end:n=!0;return n||e&&e.end!==null?t:null}function ce(e){return Ue(e)===null?0:e.tokens+1}
function We(e){return e&&e.bars.length?e.bars[0].begin:null}function fe(e,t,n){return e&&e.end!==null?e.reason==="cancelled"?"cancelled":"done":e&&e.bars.length?
e.bars[e.bars.length-1].kind===0?"prefill":"decode":t>n?"later":"queued"}function At(e,t){let n="";for(let[s,d]of e?e.waits:[])(s<=t||!n)&&(n=d);return n}function je(e,t,n){
let s=[],d=We(e),c=d===null?e&&e.end!==null?e.end:n:d;c>t&&s.push({kind:"queued",from:t,to:c});for(let r of e?e.bars:[])if(r.kind===0){let f=r.padding/(r.padding+
r.tokens),u=r.begin+f*(r.end-r.begin);r.padding&&s.push({kind:"padding",from:r.begin,to:u}),s.push({kind:"prefill",from:u,to:r.end})}else s.push({kind:r.kind===
2?"idle":"decode",from:r.begin,to:r.end});return s}function ue(e,t){let n=Ue(e),s=We(e),d=ce(e),c=e?e.bars.filter(f=>f.kind===0):[],r=e?e.bars.filter(f=>f.kind===
2).reduce((f,u)=>f+u.end-u.begin,0):0;return{waited:s===null?null:Math.max(0,s-t),ttft:n===null?null:n-t,perToken:e&&e.end!==null&&d>1?(e.end-n)/(d-1):null,total:e&&
e.end!==null?e.end-t:null,tokens:d,chunks:c.length,padding:c.reduce((f,u)=>f+u.padding,0),held:r}}function $(e,t,n,s,d){let c=fe(t,n,s),r=ue(t,n),f=[],u=t?[...new Set(
t.waits.map(([,o])=>o))]:[],h=u.length?" for "+u.map(o=>d[o]||o).join(", then for "):"";if(s<=0&&!t)return"Request "+(e+1)+": this arm has not begun";if(c==="la\
ter")return"Request "+(e+1)+": arrives at "+N(n);if(r.waited===null){let o=At(t,s);f.push(c==="cancelled"?"cancelled while it waited"+h:"waits"+(o?" for "+(d[o]||
o):""))}else{f.push(r.waited>0&&h?"waited "+N(r.waited)+h:"began at once");let o=r.padding?" and "+y(Math.round(r.padding))+" of padding":"";f.push("prompt of "+
y(t.prompt)+" tokens"+o+(r.chunks>1?" in "+r.chunks+" pieces":"")),r.ttft!==null&&f.push("first token after "+N(r.ttft)),f.push(y(r.tokens)+(r.tokens===1?" toke\
n":" tokens")),r.total!==null&&f.push((c==="cancelled"?"cancelled after ":"done after ")+N(r.total)),r.held>0&&f.push("its slot then idle for "+N(r.held))}return"\
Request "+(e+1)+": "+f.join(", ")}var Ct=240;function Je(e,t){if(e<=0)return 1;if(t)return e;let n=10**Math.floor(Math.log10(e));return[1,1.5,2,3,4,5,6,8].map(s=>s*n).find(s=>s>=e*1.02)||10*n}function Z(e,t){
let n=e/Math.max(1,t),s=10**Math.floor(Math.log10(n)),d=[1,2,5,10].map(r=>r*s).find(r=>r>=n),c=[];for(let r=0;r*d<=e*1.0001;r++)c.push(Number((r*d).toPrecision(
6)));return c}function Ve(e,t,n){let s=new Array(t).fill(0),d=new Array(t).fill(0),c=new Array(t).fill(0),r=n/t;for(let f=0;f<e.end.length;f++){let u=e.prefill[f]+
e.decode[f];for(let h=Math.floor(e.begin[f]/r);h<t&&h*r<e.end[f];h++){let o=Math.max(0,Math.min(e.end[f],(h+1)*r)-Math.max(e.begin[f],h*r))/r;s[h]+=o*u,d[h]+=o*
e.idle[f],c[h]+=o}}return{work:s.map((f,u)=>c[u]?f:null),idle:d}}function X(e,t){let n=0,s=e.begin.length;for(;n<s;){let d=n+s>>1;e.begin[d]<=t?n=d+1:s=d}return n-
1}function Xe(e,t){let n=Math.min(...t.map(s=>s.page_bytes));return Math.max(1,Math.min(Ct,Math.round(e/n)))}function Ke(e,t,n,s,d){let{moves:c,steps:r}=e,f=new Int32Array(
n*s).fill(-1),u=new Int32Array(n).fill(-1),h=new Int32Array(n),o=new Map,p=B(e),m=0;for(let i=0;i<s;i++){let a=(i+.5)*d/s;if(a>p)break;let l=X(r,a);for(;m<c.step.
length&&c.step[m]<=l;m++){let b=c.group[m]+":"+c.page[m],g=c.request[m],k=o.has(b)?o.get(b):-1;o.set(b,g);let x=Math.floor(c.from[m]/t*n),v=Math.max(x+1,Math.round(
c.to[m]/t*n));for(let T=x;T<Math.min(v,n);T++)h[T]+=+(g>=0)-+(k>=0),u[T]=g>=0?g:h[T]>0?u[T]:-1}f.set(u,i*n)}return f}var P=36,Rt=6;function U(e,t){let n=e.clientWidth,s=window.devicePixelRatio||1;if(!n)return null;e.style.height!==t+"px"&&(e.style.height=t+"px");let d=Math.round(
n*s),c=Math.round(t*s);(e.width!==d||e.height!==c)&&(e.width=d,e.height=c);let r=e.getContext("2d");return r.setTransform(s,0,0,s,0,0),r.clearRect(0,0,n,t),r.font=
"11px "+(q("--font")||"sans-serif"),{pen:r,width:n,height:t,inner:Math.max(1,n-P-Rt)}}function W(e){return{arm:q(e%2?"--arm-b":"--arm-a"),ink:q("--body-text-col\
or"),subdued:q("--body-text-color-subdued"),line:q("--border-color-primary"),band:q("--background-fill-secondary")}}var pe=new Map;function ee(e,t){if(!pe.has(t)){
let n=document.createElement("canvas");n.width=n.height=6;let s=n.getContext("2d");s.strokeStyle=t,s.lineWidth=1.1;for(let d of[-6,0,6])s.beginPath(),s.moveTo(d-
1,7),s.lineTo(d+7,-1),s.stroke();pe.set(t,n)}return e.createPattern(pe.get(t),"repeat")}function j(e,t,n,s,d){let{pen:c,inner:r}=e;c.strokeStyle=t.line,c.fillStyle=
t.subdued,c.lineWidth=1,c.textBaseline="top";let f=Z(n,r/70);f.forEach((u,h)=>{let o=Math.round(P+u/n*r)+.5;c.beginPath(),c.moveTo(o,0),c.lineTo(o,s),c.stroke(),
d&&(c.textAlign=h===f.length-1&&u/n>.95?"right":h?"center":"left",c.fillText(u+(h===f.length-1?" s":""),o,s+3))})}function D(e,t,n,s,d){e.pen.fillStyle=t.subdued,
e.pen.textAlign="right",e.pen.textBaseline=d||"middle",e.pen.fillText(n,P-8,s)}function te(e,t,n){return(n-P)/e.inner*t}var yt=300,_t=15,Pt=1,me=17;function ze(e){return Math.max(Pt,Math.min(_t,yt/e))}function Nt(e){return Math.ceil(ze(e)*e)+me}function Ye(e,t){let{batch:n,asked:s,
now:d,end:c,chosen:r,hovered:f}=t,u=s.arrival_s.length,h=U(e,Nt(u));if(!h)return null;let{pen:o,width:p,inner:m}=h,i=W(t.arm),a=ze(u),l=a*u,b=S=>P+Math.min(1,S/
c)*m;for(let S of new Set([r,f]))S<0||S>=u||(o.fillStyle=i.band,o.fillRect(0,S*a-(a<4?2:0),p,Math.max(a,4)));j(h,i,c,l,!0);let g=ee(o,i.subdued),k=a>=5?1:0,x=Math.
max(a-2*k,.8);for(let S=0;S<u;S++){let A=n.rows.get(S),R=S*a+k;for(let I of je(A,s.arrival_s[S],d))C(I,R);A&&A.end!==null&&A.reason==="cancelled"&&a>=5&&_(b(A.end),
R+x/2)}let v=Math.max(1,Math.ceil(14/a)),T=v===1?1:Z(u,u/v)[1]||u;for(let S=Math.max(1,T===1?1:T);S<=u;S+=T)D(h,i,String(S),(S-.5)*a);return T*a>=24&&D(h,i,"1",
a/2+3),r>=0&&r<u&&(o.fillStyle=i.ink,o.beginPath(),o.moveTo(P-4,(r+.5)*a-4),o.lineTo(P+1,(r+.5)*a),o.lineTo(P-4,(r+.5)*a+4),o.fill()),{...h,high:a,bottom:l};function C(S,A){
let R=b(S.from),I=Math.max(b(S.to)-R,S.kind==="prefill"?1.5:.5);o.globalAlpha=1,S.kind==="queued"?(o.globalAlpha=.5,o.fillStyle=i.subdued,o.fillRect(R,A+x/2-Math.
min(.75,x/4),I,Math.min(1.5,x/2))):S.kind==="idle"||S.kind==="padding"?(o.fillStyle=g,o.fillRect(R,A,I,x),a>=6&&I>3&&(o.strokeStyle=i.subdued,o.lineWidth=.6,o.strokeRect(
R+.3,A+.3,I-.6,x-.6))):(o.fillStyle=S.kind==="prefill"?i.ink:i.arm,o.fillRect(R,A,I,x),S.kind==="prefill"&&I>4&&(o.fillStyle=i.band,o.fillRect(R+I-.7,A,.7,x))),
o.globalAlpha=1}function _(S,A){o.strokeStyle=i.ink,o.lineWidth=1.4,o.beginPath(),o.moveTo(S-3,A-3),o.lineTo(S+3,A+3),o.moveTo(S+3,A-3),o.lineTo(S-3,A+3),o.stroke()}}var Qe=62;function $e(e,{batch:t,slots:n,end:s,arm:d}){let c=U(e,Qe);if(!c)return null;let{pen:r,inner:f}=c,u=W(d),h=Qe-2,o=6,p=Math.round(f);j(c,u,s,h,!1);let m=l=>h-
l/n*(h-o),i=Ve(t.steps,p,s),a=ee(r,u.subdued);for(let l=0;l<p;l++)i.work[l]!==null&&(r.fillStyle=u.arm,r.fillRect(P+l,m(i.work[l]),1,h-m(i.work[l])),i.idle[l]&&
(r.fillStyle=a,r.fillRect(P+l,m(i.work[l]+i.idle[l]),1,m(i.work[l])-m(i.work[l]+i.idle[l]))));return r.strokeStyle=u.subdued,r.setLineDash([3,3]),r.beginPath(),
r.moveTo(P,Math.round(m(n))+.5),r.lineTo(P+f,Math.round(m(n))+.5),r.stroke(),r.setLineDash([]),D(c,u,String(n),m(n)),D(c,u,"0",h,"bottom"),c}function Ze(e,t,n){
let s=X(e.steps,n),{steps:d}=e;if(s<0||n>B(e))return"";let c=[["prefill",d.prefill],["decode",d.decode],["idle",d.idle]].filter(([,f])=>f[s]).map(([f,u])=>u[s]+
" "+f),r=d.waiting[s]?"; "+y(d.waiting[s])+" waiting":"";return"Step "+y(s+1)+" at "+N(d.begin[s])+": "+(c.join(", ")||"no request")+" of "+t+" slots"+r}var G=110,et=[.9,.45,.7,.3,.58];function nt(e,{batch:t,pages:n,cacheBytes:s,end:d,chosen:c,arm:r}){let f=U(e,G+me);if(!f)return null;let{pen:u,inner:h}=f,o=W(r),
p=Xe(s,n),m=Math.max(1,Math.round(h)),i=Ke(t,s,p,m,d),[a,l,b]=tt(o.arm),g=tt(o.ink);u.fillStyle=o.band,u.fillRect(P,0,h,G);let k=document.createElement("canvas");
k.width=m,k.height=p;let x=k.getContext("2d"),v=x.createImageData(m,p);for(let C=0;C<m;C++)for(let _=0;_<p;_++){let S=i[C*p+_],A=4*(_*m+C);if(S<0)continue;let R=S===
c;v.data[A]=R?g[0]:a,v.data[A+1]=R?g[1]:l,v.data[A+2]=R?g[2]:b,v.data[A+3]=R?255:Math.round(255*et[S%et.length])}x.putImageData(v,0,0),u.imageSmoothingEnabled=!1,
u.drawImage(k,P,0,h,G);let T=G/p;if(T>=5){u.fillStyle=q("--body-background-fill");for(let C=1;C<p;C++)u.fillRect(P,Math.round(C*T)-.5,h,1)}return j(f,{...o,line:"\
transparent"},d,G,!0),D(f,o,"1",1,"top"),p>1&&D(f,o,y(It(n,s)),G,"bottom"),{...f,map:i,lines:p,columns:m}}function It(e,t){return Math.round(t/Math.min(...e.map(
n=>n.page_bytes)))}function ot(e,t,n,s){let d=te(e,t.end,n),c=X(t.batch.steps,d),r=Math.floor((n-P)/e.inner*e.columns),f=Math.floor(s/G*e.lines);if(c<0||r<0||r>=
e.columns||f<0||f>=e.lines||d>B(t.batch))return"";let u=e.map.subarray(r*e.lines,(r+1)*e.lines),h=u[f],o=u.reduce((p,m)=>p+ +(m>=0),0);return"Step "+y(c+1)+" at\
 "+N(d)+": "+Math.round(100*o/e.lines)+"% held; here "+(h<0?"free":"request "+(h+1))}function tt(e){let t=document.createElement("canvas").getContext("2d",{willReadFrequently:!0});
return t.fillStyle=e,t.fillRect(0,0,1,1),[...t.getImageData(0,0,1,1).data].slice(0,3)}var Ot=[["queued","waits"],["prefill","prefill"],["decode","decode"],["idle","idle slot or padding"],["cancelled","cancelled"]];function rt(e,t,n){let s=[];function d(a){
e.replaceChildren(),s=a.arms.map((l,b)=>{let g=w("section","td-lane arm-"+l.name.toLowerCase()),k=w("h3","","");k.append(w("span","td-arm",l.name),w("b","",l.kind),
document.createTextNode(" "),c());let x=r("Slots at work","of "+a.slots+", by step"),v=r("Requests","by arrival, over seconds"),T=r("KV pages",l.kind==="continu\
ous"?"who holds them, over seconds":"");v.canvas.tabIndex=0,v.canvas.setAttribute("role","application"),v.canvas.setAttribute("aria-label","Gantt chart of the r\
equests of arm "+l.name+". Arrow keys choose a request, which is described below; the table of requests holds the same."),x.canvas.setAttribute("role","img"),x.
canvas.setAttribute("aria-label","Slots at useful work and idle slots of arm "+l.name+" by step; the figures above give their share."),T.canvas.setAttribute("ro\
le","img"),T.canvas.setAttribute("aria-label","Map of the KV pages of arm "+l.name+" by step: free, or held by which request."),T.figure.classList.toggle("td-ma\
p",l.kind==="continuous");let C=w("p","td-empty","");T.figure.append(C),g.append(k,x.figure,v.figure,T.figure),e.append(g);let _={i:b,slots:x,gantt:v,pages:T,none:C,
fields:{},view:null,hovered:-1};return f(_),_})}function c(){let a=w("span","td-legend");for(let[l,b]of Ot){let g=w("span","");g.append(w("i","td-key "+l),document.
createTextNode(b)),a.append(g)}return a}function r(a,l){let b=w("div","td-strip"),g=w("p","td-caption",""),k=w("canvas","");return g.append(w("b","",a),document.
createTextNode(" "+l)),b.append(g,k),{figure:b,canvas:k,caption:g}}function f(a){let l=(b,g)=>{let{canvas:k}=a[b];k.addEventListener("pointermove",x=>{let v=k.getBoundingClientRect(),
T=x.clientX-v.left,C=x.clientY-v.top;o(x,a.fields[b]&&a.view?g(T,C):"")}),k.addEventListener("pointerleave",()=>{t.hidden=!0,a.hovered>=0&&(a.hovered=-1,p(a))})};
l("slots",b=>Ze(a.view.batch,a.view.slots,te(a.fields.slots,a.view.end,b))),l("pages",(b,g)=>ot(a.fields.pages,a.view,b,g)),l("gantt",(b,g)=>{let k=u(a,g);return k!==
a.hovered&&(a.hovered=k,p(a)),k<0?"":h(a,k)}),a.gantt.canvas.addEventListener("click",b=>{let g=u(a,b.clientY-a.gantt.canvas.getBoundingClientRect().top);g>=0&&
n(g)}),a.gantt.canvas.addEventListener("keydown",b=>{if(!a.view)return;let g=a.view.asked.arrival_s.length-1,k=a.view.chosen,x={ArrowDown:k+1,ArrowUp:k-1,PageDown:k+
10,PageUp:k-10,Home:0,End:g}[b.key];x!==void 0&&(b.preventDefault(),n(Math.max(0,Math.min(g,x))))})}function u(a,l){let{gantt:b}=a.fields;return!b||l>=b.bottom?
-1:Math.max(0,Math.min(a.view.asked.arrival_s.length-1,Math.floor(l/b.high)))}function h(a,l){let{batch:b,asked:g,now:k,waits:x}=a.view;return $(l,b.rows.get(l),
g.arrival_s[l],k,x)}function o(a,l){if(t.hidden=!l,!l)return;M(t,l);let b=e.getBoundingClientRect(),g=Math.min(360,b.width-8);t.style.maxWidth=g+"px";let k=Math.
min(a.clientX-b.left+14,b.width-t.offsetWidth-4);t.style.left=Math.max(0,k)+"px",t.style.top=a.clientY-b.top+18+"px"}function p(a){let{view:l}=a;l&&(a.fields.slots=
$e(a.slots.canvas,l),a.fields.gantt=Ye(a.gantt.canvas,{...l,hovered:a.hovered}),a.pages.canvas.hidden=!l.pages.length,M(a.none,l.pages.length?"":l.paged?"The pa\
ges appear when the run begins.":"No pages: each static batch has one padded cache, as long as its longest request."),l.pages.length&&(a.fields.pages=nt(a.pages.
canvas,l)))}function m(a){s.forEach((l,b)=>{l.view=a[b],p(l)})}function i(){s=[],e.replaceChildren(),t.hidden=!0}return{build:d,paint:m,clear:i}}function st(e,t){let n=Math.min(e.length,t.length);for(let s=0;s<n;s++)if(e.charCodeAt(s)!==t.charCodeAt(s))return s;return-1}function at(e,t){let n=[],s=null,d=null;function c(h,o){e.replaceChildren();let p=w("p","td-which",""),m=w("label","","Request ");s=w("input","td-number"),Object.
assign(s,{type:"number",min:1,max:o,value:1}),s.addEventListener("input",()=>{let i=Math.round(Number(s.value));i>=1&&i<=o&&t(i-1)}),m.append(s,document.createTextNode(
" of "+y(o))),d=w("span","td-same-tokens",""),p.append(m,d),e.append(p),n=h.arms.map(i=>{let a=w("section","arm-"+i.name.toLowerCase()),l=w("p","td-words",""),b=w(
"div","td-body",""),g=w("span","","");l.append(w("span","td-arm",i.name),g),l.setAttribute("role","status");let k=w("div","td-scroll");return k.tabIndex=0,k.setAttribute(
"role","region"),k.setAttribute("aria-label","Text of the chosen request in arm "+i.name),k.append(b),a.append(l,k),e.append(a),{line:g,body:b,shown:""}})}function r(h,o,p){
if(!s)return;document.activeElement!==s&&Number(s.value)!==p+1&&(s.value=p+1);let m=h.map(g=>g.batch.rows.get(p)),i=m.map(g=>g?g.text:""),a=m.length>1&&m.every(
g=>g&&g.end!==null),l=a?st(i[0],i[1]):-1,b=o.differ[p];M(d,!a||m.some(g=>g.reason==="cancelled")?"":b===void 0?"Both arms gave it the same tokens.":"The arms di\
ffer from its token "+y(b)+" on (counted from 0)."),h.forEach((g,k)=>{M(n[k].line,$(p,m[k],g.asked.arrival_s[p],g.now,g.waits));let x=JSON.stringify([i[k],l,p]);
n[k].shown!==x&&(n[k].shown=x,f(n[k].body,i[k],l))})}function f(h,o,p){if(h.replaceChildren(),!o){h.append(w("span","td-empty","Its text appears when it is done\
."));return}if(p<0){h.append(document.createTextNode(o));return}let m=w("span","td-divergent"),i=w("mark","td-difference","≠");i.title="The texts differ from \
here on.",m.append(document.createTextNode(o.slice(p))),h.append(document.createTextNode(o.slice(0,p)),i,m)}function u(){e.replaceChildren(),n=[],s=d=null}return{
build:c,show:r,clear:u}}var it=(e,t)=>{let n=!1,s=!1,d=()=>{n=!0},c=()=>{n&&(n=!1,setTimeout(()=>{s&&!n&&(s=!1,t())}))};e.addEventListener("pointerdown",r=>{r.button===0&&d()}),e.addEventListener(
"keydown",r=>{r.key===" "&&d()});for(let r of["pointerup","pointercancel","keyup","blur"])window.addEventListener(r,c);return()=>{n?s=!0:t()}};var qt={later:"not yet arrived",queued:"waits",prefill:"prefill",decode:"decode",done:"done",cancelled:"cancelled"};function lt(e,t,n){let s=null,d="",c=0,r=it(
t,u);e.addEventListener("toggle",()=>{c=0,u()});function f(i,a,l){s={views:i,head:a,over:l},r()}function u(){if(!s||!e.open||!s.over&&performance.now()-c<1e3)return;
c=performance.now();let{views:i,head:a}=s,{asked:l}=i[0],b=i.length>1,g=l.arrival_s.map((A,R)=>o(i,a,R,b)),k=JSON.stringify(g);if(k===d)return;d=k;let x=w("tabl\
e",""),v=w("thead",""),T=w("tr",""),C=w("tbody",""),_=["Request","Arrives","Prompt","New tokens"],S=["state","waited","for","TTFT","per token","end to end","tok\
ens"];for(let A of _)T.append(h(A));for(let A of a.arms)for(let R of S)T.append(h(A.name+" "+R));b&&T.append(h("Same tokens")),v.append(T),g.forEach((A,R)=>{let I=w(
"tr","");A.forEach((ie,xt)=>{if(xt){I.append(w("td","",ie));return}let le=w("th",""),z=w("button","td-pick",ie);le.scope="row",z.type="button",z.setAttribute("a\
ria-label","Show request "+ie),z.addEventListener("click",()=>n(R)),le.append(z),I.append(le)}),C.append(I)}),x.append(v,C),t.replaceChildren(x)}function h(i){let a=w(
"th","",i);return a.scope="col",a}function o(i,a,l,b){let{asked:g}=i[0],k=[String(l+1),N(g.arrival_s[l]),y(g.prompt_tokens[l]),y(g.max_new_tokens[l])],x=i.every(
v=>v.batch.rows.get(l)?.end!=null);for(let{batch:v,now:T,waits:C}of i){let _=v.rows.get(l),S=g.arrival_s[l],A=ue(_,S),R=_?[...new Set(_.waits.map(([,I])=>C[I]||
I))]:[];k.push(qt[fe(_,S,T)],p(A.waited),R.join(", then "),p(A.ttft),p(A.perToken),p(A.total),y(A.tokens))}return b&&k.push(x?a.differ[l]===void 0?"yes":"until \
token "+a.differ[l]:""),k}function p(i){return i===null?"–":i<1?(1e3*i).toPrecision(3)+" ms":N(i)}function m(){s=null,d="",t.replaceChildren()}return{take:f,clear:m}}var Bt="drawn slowly while this machine's own cores are measured",Dt="Press Run: arm A serves all requests first, then arm B serves the same ones. When each req\
uest waits, is processed and ends, which slots stand idle and who holds which page of the KV cache appear here, with proof that each choice took effect.",we=rt(
L(".td-lanes"),L(".td-tip"),ae),ke=at(L(".td-chosen"),ae),dt=lt(L(".td-requests"),L(".td-request-rows"),ae),K=_e(L(".td-progress")),ct=Pe(L(".td-sentence"),L(".\
td-basis"),L(".td-digest"),L(".td-unasked")),ft=Ne(L(".td-tiles")),ut=Ie(L(".td-rows")),pt=Oe(L(".td-ledger")),O=[],E=null,J=null,F="",be=-1,mt=0,he=0,H=!1,oe=0,
re=!1,ge=0,xe=0,ne=ye(Ft,Gt,e=>M(L(".td-connection"),e));async function Ft(){let e=++mt,t=F,n=O.length?O.map(Fe):[[0,0,0,0],[0,0,0,0]],s=JSON.parse(await server.
pull({run:t,version:be,cur:n}));return s.seq=e,s}function Gt(e){if(e.error)return Se(F,e.error),"over";if(e.run!==F||H)return H?"over":"wait";if(e.head&&e.seq>he&&
(he=e.seq,Ht(e)),!E)return"wait";Te(e.status,e.queue),Ae(e.trouble),ne.atLeast(e.every_ms);let t=!1;e.lanes.forEach((r,f)=>{t=Ge(O[f],r,E.arms[f].pages)||t}),(t||
e.head)&&(re=!0);let[n,s,d]=settings.most,c=r=>r.n-r.first>=n||r.mn-r.mfirst>=s||r.en-r.efirst>=d;return e.ended?(Wt(e),"over"):t&&e.lanes.some(c)?"more":"wait"}
function Ht(e){let t=!E;E=e.head,be=e.version,J=E.asked||J,t&&(O=E.arms.map(De),we.build(E),ke.build(E,J.arrival_s.length),K.build(E.arms),M(L(".td-empty-run"),
""),V(!1)),M(L(".td-title"),E.title),M(L(".td-note"),E.note),M(L(".td-traffic"),E.traffic),K.take(E),ct.take(E,e.status),window.tokendynoAddress?.title("batchin\
g",E.heading),M(L(".td-why"),E.why),ft.take(E.arms,E.differences),ut.take(E.arms),pt.take(E.arms,E.digest),Be(L(".td-remarks"),E.arms);let n=Ce(e.status,E.message);
V(n&&!O.some(s=>s.steps.end.length)),ht(e.ended)}function ht(e){let t=!e&&E.quiet&&Le;ne.every(t?400:80),gt=t?1e3:80,M(L(".td-pace"),t?Bt:"")}var gt=80;function Ut(){
let e=Math.max(...O.map(B),J.arrival_s[0]),t=Je(e,H);return O.map((n,s)=>({batch:n,asked:J,now:B(n),end:t,chosen:oe,arm:s,slots:E.slots,waits:E.waits,pages:E.arms[s].
pages,cacheBytes:E.arms[s].cache_bytes,paged:E.arms[s].kind==="continuous"}))}function se(){let e=performance.now(),t=Ut();re=!1,we.paint(t),ke.show(t,E,oe),dt.
take(t,E,H),ge=performance.now(),xe=ge-e}function ae(e){oe=e,E&&se()}function Wt(e){H=!0,ht(!0),K.tick(wt(),!0),se(),element.dataset.over=e.run,trigger("finishe\
d",{run:e.run,status:e.status})}function wt(){return O.map(e=>{let t=0;for(let n of e.rows.values())t+=ce(n);return{t:{length:t}}})}function kt(e){if(F=e||"",O=
[],E=null,J=null,be=-1,he=mt,H=!1,oe=0,Ee(F,["traffic","pace","why"]),window.dispatchEvent(new Event("tokendyno-run")),window.tokendynoAddress?.title("batching",
""),ct.clear(),ft.clear(),ut.clear(),pt.clear(),K.clear(),we.clear(),ke.clear(),dt.clear(),M(L(".td-empty-run"),F?"":Dt),V(!0),Re(F),!F){ne.stop();return}ne.begin()}
function bt(){element.isConnected&&(E&&!H&&!document.hidden&&K.tick(wt()),E&&re&&!document.hidden&&performance.now()-ge>Math.max(gt,4*xe)&&se(),setTimeout(bt,100))}
ve(()=>{re=!0});new ResizeObserver(()=>{E&&se()}).observe(element);element.classList.add("td-batch");element.batch={get batches(){return O},get head(){return E},
get paintMs(){return xe},choose:ae};watch("value",()=>{(props.value||"")!==F&&kt(props.value)});kt(props.value);bt();})();
