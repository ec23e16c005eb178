"use strict";(()=>{var ve=e=>{new MutationObserver(()=>e()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};function c(e,t,n){let s=document.createElement(e);return t&&(s.className=t),n!==void 0&&(s.textContent=n),s}function Me(e,t){let n=c("tr","");n.append(c("th","",
e),...t.map(s=>{let f=c("th","arm-"+s.name.toLowerCase());return f.append(c("span","td-arm",s.name)),f}));for(let s of n.querySelectorAll("th"))s.scope="col";return n}
function M(e,t){e.textContent!==t&&(e.textContent=t)}function L(e){return element.querySelector(e)}function q(e){return getComputedStyle(element).getPropertyValue(
e).trim()}function _(e){return e.toLocaleString("en-US")}function N(e){return e>=100?Math.round(e)+" s":e.toFixed(e>=10?1:2)+" s"}var Tt={queued:"Queued",running:"Running",done:"Done",failed:"Failed",cancelled:"Stopped",interrupted:"Interrupted"},Le=/^(localhost|127(\.\d+){3}|\[::1\])$/.test(
location.hostname);function Te(e,t){M(L(".td-status"),Tt[e]||e),e==="queued"&&t&&M(L(".td-message"),t),element.dataset.status=e}function J(e){element.classList.
toggle("td-bare",e)}function Se(e,t){for(let n of["status","empty-run"])M(L(".td-"+n),"");M(L(".td-failure"),t),J(!0),trigger("finished",{run:e,status:"unknown"})}
function Ee(e,t){for(let n of["status","over"])delete element.dataset[n];element.dataset.run=e;for(let n of["status","title","note","failure","message","connect\
ion","unkept",...t])M(L(".td-"+n),"");L(".td-remarks").replaceChildren(),delete L(".td-remarks").dataset.shown}function Ae(e){M(L(".td-unkept"),e?"▲ "+e:"")}function Ce(e,t){
let n=e==="failed"||e==="interrupted";return M(L(".td-failure"),n?t||"The run ended unexpectedly.":""),M(L(".td-message"),n?"":t),n}function Y(e){return L(e)}function ye(e){
if(L(".td-link").hidden=L(".td-files").hidden=!e,!e)return;let t=new URL(location.href);t.search="?"+new URLSearchParams({run:e}),t.hash="",Y(".td-permalink").href=
t.href,M(L(".td-permalink"),t.search),Y(".td-kept").href="?"+new URLSearchParams({view:"history",q:e}),L(".td-kept").hidden=e.startsWith("recorded-");for(let f of[
"dyno","html","json"])Y(".td-file-"+f).href="files/"+encodeURIComponent(e)+"."+f;L(".td-file-html").hidden=!L(".td-plot");let n=new URL(location.href),s=n.searchParams.
get("view")||window.tokendynoAddress?.page;if(s&&s!=="compare"&&s!=="batching"){window.tokendynoAddress?.note(element.closest("#batch-live")?"batching":"compare",
e);return}n.searchParams.set("run",e);for(let f of["worth","sweep"])n.searchParams.delete(f);n.href!==location.href&&history.replaceState(history.state,"",n.href)}
async function St(){let{href:e}=Y(".td-permalink");try{await navigator.clipboard.writeText(e),M(L(".td-copied"),"Copied")}catch{window.prompt("Copy this link:",
e)}setTimeout(()=>M(L(".td-copied"),""),2e3)}L(".td-copy").addEventListener("click",St);var Et=3,At=8e3;function Re(e,t,n){let s=60,f=0,u=!1,r=0,m=0,p=0,w=0,o=!1,h=!1;function g(b){return new Promise((k,i)=>{let x=setTimeout(()=>i(new Error("no ans\
wer")),At);b.then(v=>{clearTimeout(x),k(v)},v=>{clearTimeout(x),i(v)})})}async function d(){let b=w;r++;try{let k="more";for(;k==="more";){let i=await g(e());if(b!==
w)return;h=!0,m&&(m=0,p=0,n("")),k=t(i)}k==="over"&&(o=!1)}catch{if(b!==w||!o)return;m++;let k=Math.min(1e4,250*2**m);p=performance.now()+k,n("The server does n\
ot answer. Retrying in "+N(k/1e3)+"; nothing is lost.")}finally{r--}}async function a(){if(!element.isConnected)return;let b=m||!h||u?1:Et,k=o&&!document.hidden&&
r<b&&performance.now()>=p,i=k&&d();u&&await i,setTimeout(a,Math.max(s,f))}setTimeout(a,0),document.addEventListener("visibilitychange",()=>{!document.hidden&&element.
isConnected&&o&&r===0&&(p=0,d())});function l(){w++,m=0,p=0,h=!1,o=!0,n(""),document.hidden||d()}return{begin:l,stop(){w++,o=!1},every(b,k=!1){s=b,u=k},atLeast(b){
f=b},get running(){return o}}}function _e(e){let t=null,n=[],s=0;function f(o){e.replaceChildren(),n=o.map(h=>{let g=c("div","td-phases arm-"+h.name.toLowerCase()),d=c("span","td-steps"),a=c(
"i","td-phase-bar");return g.append(c("span","td-arm",h.name),c("b","td-label",h.label),d,a),e.append(g),{steps:d,bar:a,chips:new Map}})}function u(o,h,g){let d=o.
state==="begin"||o.state==="step",a=o.title+" "+N(d?Math.max(o.seconds,h-o.begin_s):o.seconds);return o.name==="run"&&!(t.quality&&!g)?a+=", "+_(g)+" of "+_(t.max_new_tokens)+
(t.unit==="forward"?" passes":" tokens"):d&&o.fraction!==null&&(a+=", "+Math.round(100*o.fraction)+"%"),o.wait&&(a+=", "+o.wait),d&&o.note&&(a+=" ("+o.note+")"),
o.state==="broken"?"✕ "+a:a}function r(o,h){return o.expected_s?Math.min(.95,(h-o.begin_s)/o.expected_s):0}function m(o,h){if(!t)return;let g=t.now_s+(performance.
now()-s)/1e3;t.arms.forEach((d,a)=>{let l=n[a];if(!d.phases.length){M(l.steps,h?"did not run":a?"waiting for arm "+t.arms[a-1].name:"waiting");return}l.chips.size||
l.steps.replaceChildren();for(let x of d.phases){let v=l.chips.get(x.name);v||(v=c("span",""),l.chips.set(x.name,v),l.steps.append(v));let T="td-step "+x.state;
v.className!==T&&(v.className=T),M(v,u(x,g,o[a].t.length))}let b=d.phases[d.phases.length-1],k=b.name==="run"?o[a].t.length/t.max_new_tokens:b.fraction||r(b,g),
i=d.state==="working"?(100*Math.min(1,k)).toFixed(1)+"%":"0";l.bar.style.width!==i&&(l.bar.style.width=i)})}function p(o){t=o,s=performance.now()}function w(){t=
null,n=[],e.replaceChildren()}return{build:f,take:p,tick:m,clear:w}}function Pe(e,t,n,s,f,u){function r(o,h){M(e,p(o,h)),e.classList.toggle("td-underway",!o.verdict.sentence),M(t,o.verdict.basis),M(s,o.verdict.unasked),u&&M(u,o.
verdict.pays),m(o.verdict),n.hidden=!o.digest,o.digest&&(n.className="td-digest "+o.digest.status,M(n,o.digest.line))}function m({gate:o,gate_run:h}){!f||f.textContent===
(o||"")||(f.replaceChildren(),f.title=o||"",o&&(h?f.append(Object.assign(c("a","td-gate-line",o),{href:"?"+new URLSearchParams({run:h})})):f.append(c("span","td\
-gate-line",o))))}function p(o,h){if(o.verdict.sentence)return o.verdict.sentence;if(h==="queued")return"Waiting for the runs before this one.";if(h!=="running")
return h==="done"?"The run is complete.":h==="cancelled"?"Stopped before both arms were complete: no verdict.":"";let g=o.arms.find(l=>l.state==="working");if(!g)
return"Starting.";let d=o.arms.filter(l=>l.state==="waiting").map(l=>l.name),a=g.phases.at(-1);return"Running arm "+g.name+(a?": "+a.title:"")+(d.length?"; then\
 arm "+d.join(" and ")+".":".")}function w(){M(e,""),M(t,""),M(s,""),u&&M(u,""),m({gate:"",gate_run:""}),n.hidden=!0}return{take:r,clear:w}}function Ne(e,t){let n=c("div","td-said"),s=c("div","td-four"),f=c("div","td-advice"),u=c("p","td-lead"),r=c("p","td-number"),m=c("p","td-tail"),p=c("div","td-s\
cale"),w=c("p","td-badge-said"),o=c("p","td-reason"),h=c("p","td-reason td-cost"),g=c("button","td-next");g.type="button";let d=c("div","td-ratio");d.append(r,p),
n.append(u,d,m),f.append(w,o,h,g),e.append(n,s,f);let a=null;g.addEventListener("click",()=>{t&&a?.next&&t(a.next)});function l(i){a=i,e.hidden=!i,i&&(e.className=
"td-answer "+i.tone+(i.decided?" td-decided":""),M(u,i.lead),M(r,i.figure),M(m,i.tail),k(i),s.replaceChildren(...i.tiles.map(b)),M(w,i.recommendation),M(o,i.reason),
M(h,i.cost),h.hidden=!i.cost,g.hidden=!t||!i.next,i.next&&M(g,i.next.label))}function b(i){let x=c("div","td-one"),v=c("p","td-values");return v.append(c("b",i.
b?"arm-a":"",i.a)),i.b&&v.append(c("span",""," → "),c("b","arm-b",i.b)),i.unit&&v.append(c("small",""," "+i.unit)),x.append(c("h3","",i.title),v,c("p","td-one\
-note",i.note)),x}function k(i){if(p.replaceChildren(c("p","td-ends",i.ends||(i.pairs.length===1?"one pair, no interval yet":""))),i.low===null||i.high===null)return;
let x=Ct(i),v=c("div","td-axis-line"),T=S=>100*(Math.log(S)-x.from)/(x.to-x.from)+"%",C=c("i","td-band");C.style.left=T(Math.max(i.low,Math.exp(x.from))),C.style.
right="calc(100% - "+T(Math.min(i.high,Math.exp(x.to)))+")",v.append(C,...i.pairs.map(S=>Object.assign(c("i","td-pair"),{style:"left:"+T(S)}))),x.from<0&&x.to>0&&
v.append(Object.assign(c("i","td-even"),{style:"left:"+T(1),title:"as fast"})),v.append(Object.assign(c("i","td-middle"),{style:"left:"+T(i.ratio)}));let y=c("d\
iv","td-ticks");for(let S of[Math.exp(x.from),Math.exp(x.to)])y.append(c("span","",yt(S)));p.append(v,y)}return{take:l,clear:()=>l(null)}}function Oe(e,t,n){let s=u=>document.
querySelector(u);if(e.action==="run"){s(t)?.click();return}let f=n+e.arm.toLowerCase();s(f)?.scrollIntoView({block:"start"}),s(f+" button")?.focus({preventScroll:!0})}
function Ct(e){let t=e.pairs.map(Math.log),n=Math.log(e.ratio),s=Math.max(.01,Math.max(...t)-n,n-Math.min(...t)),f=Math.min(4*s,Math.max(Math.log(e.high)-n,n-Math.
log(e.low))),u=1.15*Math.max(s,f);return{from:n-u,to:n+u}}function yt(e){return(e>=10?e.toFixed(1):e.toFixed(2))+"×"}function Ie(e){let t=new Map,n="";function s(m,p){let w=[...new Map(m.flatMap(h=>h.tiles.map(g=>[g.key,g.label])))],o=JSON.stringify([w,m.map(h=>h.name)]);n!==o&&
u(w,m,o);for(let[h]of w){let g=m.map(v=>v.tiles.find(T=>T.key===h)),{card:d,values:a,unit:l,foot:b}=t.get(h),k=[...new Set(g.map(v=>v&&v.unit).filter(Boolean))],
i=k.length===1;a.forEach((v,T)=>{let C=g[T],y=C&&C.value!=="n/a";M(v.number,y?C.value:"–"),M(v.unit,y&&!i&&C.unit?" "+C.unit:"")}),M(l,i?k[0]:"");let x=p[h];M(
b,x?x.text:f(g.map(v=>v?v.note:""))),b.className="td-foot"+(x&&x.better?" better":""),d.title=g.map((v,T)=>v&&v.note?m[T].name+": "+v.value+" "+v.unit+", "+v.note:
"").filter(Boolean).join(`
`)}}function f(m){let[p,...w]=new Set(m.filter(Boolean)),o=m.every(Boolean);return p&&!w.length&&(o||!/\d/.test(p))?p:""}function u(m,p,w){e.replaceChildren(),t=
new Map,n=w;for(let[o,h]of m){let g=c("div","td-tile"),d=c("p","td-figure"),a=c("span","td-unit",""),l=c("small","td-foot","");g.dataset.key=o;let b=p.map(k=>{let i=c(
"b","arm-"+k.name.toLowerCase()),x=c("span","",""),v=c("small","","");return i.append(x,v),d.append(c("span","td-hidden","Arm "+k.name+": "),i),{number:x,unit:v}});
d.append(a),g.append(c("h3","",h),d,l),e.append(g),t.set(o,{card:g,values:b,unit:a,foot:l})}}function r(){for(let{card:m,values:p,unit:w,foot:o}of t.values())m.
title="",p.forEach(h=>{M(h.number,"–"),M(h.unit,"")}),M(w,""),M(o,"")}return{take:s,clear:r}}function qe(e){let t="";function n(u){let r=u.filter(g=>g.details.length),m=JSON.stringify(r.map(g=>[g.name,g.details]));if(m===t)return;if(t=m,e.replaceChildren(),
!r.length){e.append(c("p","td-empty","Percentiles, intervals and readings of the machine appear here once an arm has finished."));return}let p=c("table",""),w=c(
"thead",""),o=c("tbody","");w.append(Me("Figure",r));let h=new Map(r.flatMap(g=>g.details.map(d=>[d.key,d.label])));for(let[g,d]of h){let a=c("tr",""),l=c("th",
"",d);l.scope="row",a.dataset.key=g,a.append(l,...r.map(b=>s(b.details.find(k=>k.key===g)))),o.append(a)}p.append(w,o),e.append(p)}function s(u){let r=c("td","");
return u&&(r.append(c("b","",u.value),document.createTextNode(u.unit?" "+u.unit:"")),u.note&&r.append(c("small","",u.note))),r}function f(){t="",e.replaceChildren()}
return{take:n,clear:f}}var Rt={verified:"✓ verified",partial:"◐ partial",no_effect:"○ no effect",fallback:"▲ fallback",failed:"✕ failed",unchecked:"◌ unchecked",off:"off",
not_applicable:"not applicable"};function Be(e){let t="",n=!1;function s(p,w){let o=JSON.stringify([p.map(i=>i.ledger),w]);if(o===t)return;if(t=o,e.replaceChildren(),
!w){e.append(c("p","td-empty","Proof that each choice took effect appears here once an arm has finished."));return}let h=c("table",""),g=c("tr",""),d=c("thead",
""),a=c("tbody",""),l=c("caption","","Ledger");l.append(c("small","",w.line)),h.append(l);for(let i of["Axis","Arm","Requested","Planned","Effective","Status","\
Proof"]){let x=c("th","",i);x.scope="col",x.role="columnheader",g.append(x)}d.append(g);for(let[i,x]of[[d,"rowgroup"],[a,"rowgroup"],[g,"row"]])i.role=x;let b=[
...new Set(p.flatMap(i=>i.ledger.map(x=>x.axis)))];for(let i of b){let x=u(p,i);x.forEach((v,T)=>{let C=r(v,w.titles[i]||i,T?0:x.length);C.classList.toggle("td-\
quiet",!w.shown.includes(i)),a.append(C)})}let k=c("button","td-all","");k.type="button",k.addEventListener("click",()=>{n=!n,f(h,k,b.length,w)}),h.append(d,a),
e.append(h,k),f(h,k,b.length,w)}function f(p,w,o,h){let g=!n&&!h.shown.length;p.classList.toggle("td-folded",!n),p.classList.toggle("td-none",g),p.role=g?"prese\
ntation":"table",w.hidden=h.shown.length===o,M(w,n?"Only what differs or is not verified":"All "+o+" axes with their proof"),w.setAttribute("aria-expanded",String(
n))}function u(p,w){let o=new Map;for(let h of p)for(let g of h.ledger.filter(d=>d.axis===w)){let d=JSON.stringify(g);o.has(d)?o.get(d).arms.push(h.name):o.set(
d,{...g,arms:[h.name]})}return[...o.values()]}function r(p,w,o){let h=c("tr",p.status);if(h.role="row",o){let a=c("th","",w);a.scope="rowgroup",a.rowSpan=o,a.role=
"rowheader",h.append(a)}let g=c("td","td-who");for(let a of p.arms){let l=c("span","arm-"+a.toLowerCase());l.append(c("span","td-arm",a)),g.append(l)}h.append(g);
for(let a of["requested","planned","effective"]){let l=c("td","td-choice",p[a]);l.dataset.title=a,h.append(l)}h.append(c("td","td-status",Rt[p.status]||p.status));
let d=c("td","td-proof",p.proof);p.reason&&d.append(c("small","",p.reason)),h.append(d);for(let a of h.querySelectorAll("td"))a.role="cell";return h}function m(){
t="",n=!1,e.replaceChildren()}return{take:s,clear:m}}var De={ok:"",note:"Note: ",fallback:"▲ Fallback: ",blocked:"✕ Blocked: "};function Fe(e,t){let n=t.flatMap(f=>[...f.verdicts.filter(u=>u.level!=="ok").map(
u=>({arm:f.name,level:u.level,text:De[u.level]+u.reason})),...f.spoilers.map(u=>({arm:f.name,level:"fallback",text:"▲ "+u})),...f.notes.map(u=>({arm:f.name,level:"\
note",text:De.note+u}))]),s=JSON.stringify(n);e.dataset.shown!==s&&(e.dataset.shown=s,e.replaceChildren(...n.map(f=>{let u=c("li",f.level+" arm-"+f.arm.toLowerCase());
return u.append(c("span","td-arm",f.arm),document.createTextNode(f.text)),u})))}function Ge(){return{steps:{begin:[],end:[],prefill:[],decode:[],idle:[],waiting:[],padding:[]},rows:new Map,moves:{step:[],from:[],to:[],request:[],page:[],group:[]},
parts:0,waits:0,ends:0,tokens:0}}function He(e){return[e.steps.end.length,e.waits,e.moves.step.length,e.ends]}function le(e,t){return e.rows.has(t)||e.rows.set(
t,{bars:[],waits:[],tokens:0,prompt:0,end:null,reason:"",text:""}),e.rows.get(t)}function Ue(e,t,n){let s=!1,f=e.steps.end.length;if(t.first<=f&&t.n>f){for(let r=f-
t.first;r<t.n-t.first;r++){let m=(r?t.pe[r-1]:t.pfirst)-t.pfirst,p=t.pe[r]-t.pfirst;_t(e,t,r,m,p)}s=!0}if(t.wfirst<=e.waits&&t.wn>e.waits){for(let r=e.waits-t.wfirst;r<
t.wt.length;r++)le(e,t.wr[r]).waits.push([t.wt[r],t.why[r]]);e.waits=t.wn,s=!0}let u=e.moves.step.length;if(n.length&&t.mfirst<=u&&t.mn>u){for(let r=u-t.mfirst;r<
t.ms.length;r++){let m=n[t.mg[r]].page_bytes;e.moves.step.push(t.ms[r]),e.moves.from.push(t.mp[r]*m),e.moves.to.push((t.mp[r]+1)*m),e.moves.request.push(t.mr[r]),
e.moves.page.push(t.mp[r]),e.moves.group.push(t.mg[r])}s=!0}if(t.efirst<=e.ends&&t.en>e.ends){for(let r=e.ends-t.efirst;r<t.er.length;r++){let m=le(e,t.er[r]);m.
end=t.at[r],m.reason=t.ewhy[r],m.text=t.et[r]}e.ends=t.en,s=!0}return s}function _t(e,t,n,s,f){let u=t.b[n],r=t.e[n],m=e.steps.end.length,p=[0,0,0],w=0,o=0;for(let d=s;d<
f;d++)t.k[d]===0&&(w++,o+=t.tok[d]);let h=t.pad[n]&&w?(t.pad[n]+o)/w:0;for(let d=s;d<f;d++){let a=t.k[d],l=t.r[d],b=t.tok[d];if(p[a]++,l<0)continue;let k=le(e,l),
i=k.bars[k.bars.length-1];a===0&&(k.prompt+=b),a===1&&(k.tokens++,e.tokens++),i&&i.kind===a&&i.last===m-1&&a!==0?(i.end=r,i.last=m,i.tokens+=b):k.bars.push({kind:a,
begin:u,end:r,last:m,tokens:b,padding:a===0&&h?h-b:0})}let g=e.steps;g.begin.push(u),g.end.push(r),g.prefill.push(p[0]),g.decode.push(p[1]),g.idle.push(p[2]),g.
waiting.push(t.w[n]),g.padding.push(t.pad[n])}function B(e){let t=e.steps.end;return t.length?t[t.length-1]:0}function We(e){let t=null,n=!1;for(let s of e?e.bars:[])s.kind===0?t=s.end:n=!0;return n||e&&e.end!==null?t:null}function ce(e){return We(e)===null?0:e.tokens+1}
function Ve(e){return e&&e.bars.length?e.bars[0].begin:null}function fe(e,t,n){return e&&e.end!==null?e.reason==="cancelled"?"cancelled":"done":e&&e.bars.length?
e.bars[e.bars.length-1].kind===0?"prefill":"decode":t>n?"later":"queued"}function Pt(e,t){let n="";for(let[s,f]of e?e.waits:[])(s<=t||!n)&&(n=f);return n}function Je(e,t,n){
let s=[],f=Ve(e),u=f===null?e&&e.end!==null?e.end:n:f;u>t&&s.push({kind:"queued",from:t,to:u});for(let r of e?e.bars:[])if(r.kind===0){let m=r.padding/(r.padding+
r.tokens),p=r.begin+m*(r.end-r.begin);r.padding&&s.push({kind:"padding",from:r.begin,to:p}),s.push({kind:"prefill",from:p,to:r.end})}else s.push({kind:r.kind===
2?"idle":"decode",from:r.begin,to:r.end});return s}function ue(e,t){let n=We(e),s=Ve(e),f=ce(e),u=e?e.bars.filter(m=>m.kind===0):[],r=e?e.bars.filter(m=>m.kind===
2).reduce((m,p)=>m+p.end-p.begin,0):0;return{waited:s===null?null:Math.max(0,s-t),ttft:n===null?null:n-t,perToken:e&&e.end!==null&&f>1?(e.end-n)/(f-1):null,total:e&&
e.end!==null?e.end-t:null,tokens:f,chunks:u.length,padding:u.reduce((m,p)=>m+p.padding,0),held:r}}function $(e,t,n,s,f){let u=fe(t,n,s),r=ue(t,n),m=[],p=t?[...new Set(
t.waits.map(([,o])=>o))]:[],w=p.length?" for "+p.map(o=>f[o]||o).join(", then for "):"";if(s<=0&&!t)return"Request "+(e+1)+": this arm has not begun";if(u==="la\
ter")return"Request "+(e+1)+": arrives at "+N(n);if(r.waited===null){let o=Pt(t,s);m.push(u==="cancelled"?"cancelled while it waited"+w:"waits"+(o?" for "+(f[o]||
o):""))}else{m.push(r.waited>0&&w?"waited "+N(r.waited)+w:"began at once");let o=r.padding?" and "+_(Math.round(r.padding))+" of padding":"";m.push("prompt of "+
_(t.prompt)+" tokens"+o+(r.chunks>1?" in "+r.chunks+" pieces":"")),r.ttft!==null&&m.push("first token after "+N(r.ttft)),m.push(_(r.tokens)+(r.tokens===1?" toke\
n":" tokens")),r.total!==null&&m.push((u==="cancelled"?"cancelled after ":"done after ")+N(r.total)),r.held>0&&m.push("its slot then idle for "+N(r.held))}return"\
Request "+(e+1)+": "+m.join(", ")}var Nt=240;function Xe(e,t){if(e<=0)return 1;if(t)return e;let n=10**Math.floor(Math.log10(e));return[1,1.5,2,3,4,5,6,8].map(s=>s*n).find(s=>s>=e*1.02)||10*n}function Z(e,t){
let n=e/Math.max(1,t),s=10**Math.floor(Math.log10(n)),f=[1,2,5,10].map(r=>r*s).find(r=>r>=n),u=[];for(let r=0;r*f<=e*1.0001;r++)u.push(Number((r*f).toPrecision(
6)));return u}function Ke(e,t,n){let s=new Array(t).fill(0),f=new Array(t).fill(0),u=new Array(t).fill(0),r=n/t;for(let m=0;m<e.end.length;m++){let p=e.prefill[m]+
e.decode[m];for(let w=Math.floor(e.begin[m]/r);w<t&&w*r<e.end[m];w++){let o=Math.max(0,Math.min(e.end[m],(w+1)*r)-Math.max(e.begin[m],w*r))/r;s[w]+=o*p,f[w]+=o*
e.idle[m],u[w]+=o}}return{work:s.map((m,p)=>u[p]?m:null),idle:f}}function X(e,t){let n=0,s=e.begin.length;for(;n<s;){let f=n+s>>1;e.begin[f]<=t?n=f+1:s=f}return n-
1}function ze(e,t){let n=Math.min(...t.map(s=>s.page_bytes));return Math.max(1,Math.min(Nt,Math.round(e/n)))}function Ye(e,t,n,s,f){let{moves:u,steps:r}=e,m=new Int32Array(
n*s).fill(-1),p=new Int32Array(n).fill(-1),w=new Int32Array(n),o=new Map,h=B(e),g=0;for(let d=0;d<s;d++){let a=(d+.5)*f/s;if(a>h)break;let l=X(r,a);for(;g<u.step.
length&&u.step[g]<=l;g++){let b=u.group[g]+":"+u.page[g],k=u.request[g],i=o.has(b)?o.get(b):-1;o.set(b,k);let x=Math.floor(u.from[g]/t*n),v=Math.max(x+1,Math.round(
u.to[g]/t*n));for(let T=x;T<Math.min(v,n);T++)w[T]+=+(k>=0)-+(i>=0),p[T]=k>=0?k:w[T]>0?p[T]:-1}m.set(p,d*n)}return m}var P=36,Ot=6;function U(e,t){let n=e.clientWidth,s=window.devicePixelRatio||1;if(!n)return null;e.style.height!==t+"px"&&(e.style.height=t+"px");let f=Math.round(
n*s),u=Math.round(t*s);(e.width!==f||e.height!==u)&&(e.width=f,e.height=u);let r=e.getContext("2d");return r.setTransform(s,0,0,s,0,0),r.clearRect(0,0,n,t),r.font=
"11px "+(q("--font")||"sans-serif"),{pen:r,width:n,height:t,inner:Math.max(1,n-P-Ot)}}function j(e){return{arm:q(e%2?"--arm-b":"--arm-a"),ink:q("--body-text-col\
or"),subdued:q("--body-text-color-subdued"),line:q("--border-color-primary"),band:q("--background-fill-secondary")}}var pe=new Map;function ee(e,t){if(!pe.has(t)){
let n=document.createElement("canvas");n.width=n.height=6;let s=n.getContext("2d");s.strokeStyle=t,s.lineWidth=1.1;for(let f of[-6,0,6])s.beginPath(),s.moveTo(f-
1,7),s.lineTo(f+7,-1),s.stroke();pe.set(t,n)}return e.createPattern(pe.get(t),"repeat")}function W(e,t,n,s,f){let{pen:u,inner:r}=e;u.strokeStyle=t.line,u.fillStyle=
t.subdued,u.lineWidth=1,u.textBaseline="top";let m=Z(n,r/70);m.forEach((p,w)=>{let o=Math.round(P+p/n*r)+.5;u.beginPath(),u.moveTo(o,0),u.lineTo(o,s),u.stroke(),
f&&(u.textAlign=w===m.length-1&&p/n>.95?"right":w?"center":"left",u.fillText(p+(w===m.length-1?" s":""),o,s+3))})}function D(e,t,n,s,f){e.pen.fillStyle=t.subdued,
e.pen.textAlign="right",e.pen.textBaseline=f||"middle",e.pen.fillText(n,P-8,s)}function te(e,t,n){return(n-P)/e.inner*t}var It=300,qt=15,Bt=1,me=17;function Qe(e){return Math.max(Bt,Math.min(qt,It/e))}function Dt(e){return Math.ceil(Qe(e)*e)+me}function $e(e,t){let{batch:n,asked:s,
now:f,end:u,chosen:r,hovered:m}=t,p=s.arrival_s.length,w=U(e,Dt(p));if(!w)return null;let{pen:o,width:h,inner:g}=w,d=j(t.arm),a=Qe(p),l=a*p,b=S=>P+Math.min(1,S/
u)*g;for(let S of new Set([r,m]))S<0||S>=p||(o.fillStyle=d.band,o.fillRect(0,S*a-(a<4?2:0),h,Math.max(a,4)));W(w,d,u,l,!0);let k=ee(o,d.subdued),i=a>=5?1:0,x=Math.
max(a-2*i,.8);for(let S=0;S<p;S++){let A=n.rows.get(S),R=S*a+i;for(let O of Je(A,s.arrival_s[S],f))C(O,R);A&&A.end!==null&&A.reason==="cancelled"&&a>=5&&y(b(A.end),
R+x/2)}let v=Math.max(1,Math.ceil(14/a)),T=v===1?1:Z(p,p/v)[1]||p;for(let S=Math.max(1,T===1?1:T);S<=p;S+=T)D(w,d,String(S),(S-.5)*a);return T*a>=24&&D(w,d,"1",
a/2+3),r>=0&&r<p&&(o.fillStyle=d.ink,o.beginPath(),o.moveTo(P-4,(r+.5)*a-4),o.lineTo(P+1,(r+.5)*a),o.lineTo(P-4,(r+.5)*a+4),o.fill()),{...w,high:a,bottom:l};function C(S,A){
let R=b(S.from),O=Math.max(b(S.to)-R,S.kind==="prefill"?1.5:.5);o.globalAlpha=1,S.kind==="queued"?(o.globalAlpha=.5,o.fillStyle=d.subdued,o.fillRect(R,A+x/2-Math.
min(.75,x/4),O,Math.min(1.5,x/2))):S.kind==="idle"||S.kind==="padding"?(o.fillStyle=k,o.fillRect(R,A,O,x),a>=6&&O>3&&(o.strokeStyle=d.subdued,o.lineWidth=.6,o.strokeRect(
R+.3,A+.3,O-.6,x-.6))):(o.fillStyle=S.kind==="prefill"?d.ink:d.arm,o.fillRect(R,A,O,x),S.kind==="prefill"&&O>4&&(o.fillStyle=d.band,o.fillRect(R+O-.7,A,.7,x))),
o.globalAlpha=1}function y(S,A){o.strokeStyle=d.ink,o.lineWidth=1.4,o.beginPath(),o.moveTo(S-3,A-3),o.lineTo(S+3,A+3),o.moveTo(S+3,A-3),o.lineTo(S-3,A+3),o.stroke()}}var Ze=62;function et(e,{batch:t,slots:n,end:s,arm:f}){let u=U(e,Ze);if(!u)return null;let{pen:r,inner:m}=u,p=j(f),w=Ze-2,o=6,h=Math.round(m);W(u,p,s,w,!1);let g=l=>w-
l/n*(w-o),d=Ke(t.steps,h,s),a=ee(r,p.subdued);for(let l=0;l<h;l++)d.work[l]!==null&&(r.fillStyle=p.arm,r.fillRect(P+l,g(d.work[l]),1,w-g(d.work[l])),d.idle[l]&&
(r.fillStyle=a,r.fillRect(P+l,g(d.work[l]+d.idle[l]),1,g(d.work[l])-g(d.work[l]+d.idle[l]))));return r.strokeStyle=p.subdued,r.setLineDash([3,3]),r.beginPath(),
r.moveTo(P,Math.round(g(n))+.5),r.lineTo(P+m,Math.round(g(n))+.5),r.stroke(),r.setLineDash([]),D(u,p,String(n),g(n)),D(u,p,"0",w,"bottom"),u}function tt(e,t,n){
let s=X(e.steps,n),{steps:f}=e;if(s<0||n>B(e))return"";let u=[["prefill",f.prefill],["decode",f.decode],["idle",f.idle]].filter(([,m])=>m[s]).map(([m,p])=>p[s]+
" "+m),r=f.waiting[s]?"; "+_(f.waiting[s])+" waiting":"";return"Step "+_(s+1)+" at "+N(f.begin[s])+": "+(u.join(", ")||"no request")+" of "+t+" slots"+r}var G=110,nt=[.9,.45,.7,.3,.58];function rt(e,{batch:t,pages:n,cacheBytes:s,end:f,chosen:u,arm:r}){let m=U(e,G+me);if(!m)return null;let{pen:p,inner:w}=m,o=j(r),
h=ze(s,n),g=Math.max(1,Math.round(w)),d=Ye(t,s,h,g,f),[a,l,b]=ot(o.arm),k=ot(o.ink);p.fillStyle=o.band,p.fillRect(P,0,w,G);let i=document.createElement("canvas");
i.width=g,i.height=h;let x=i.getContext("2d"),v=x.createImageData(g,h);for(let C=0;C<g;C++)for(let y=0;y<h;y++){let S=d[C*h+y],A=4*(y*g+C);if(S<0)continue;let R=S===
u;v.data[A]=R?k[0]:a,v.data[A+1]=R?k[1]:l,v.data[A+2]=R?k[2]:b,v.data[A+3]=R?255:Math.round(255*nt[S%nt.length])}x.putImageData(v,0,0),p.imageSmoothingEnabled=!1,
p.drawImage(i,P,0,w,G);let T=G/h;if(T>=5){p.fillStyle=q("--body-background-fill");for(let C=1;C<h;C++)p.fillRect(P,Math.round(C*T)-.5,w,1)}return W(m,{...o,line:"\
transparent"},f,G,!0),D(m,o,"1",1,"top"),h>1&&D(m,o,_(Ft(n,s)),G,"bottom"),{...m,map:d,lines:h,columns:g}}function Ft(e,t){return Math.round(t/Math.min(...e.map(
n=>n.page_bytes)))}function st(e,t,n,s){let f=te(e,t.end,n),u=X(t.batch.steps,f),r=Math.floor((n-P)/e.inner*e.columns),m=Math.floor(s/G*e.lines);if(u<0||r<0||r>=
e.columns||m<0||m>=e.lines||f>B(t.batch))return"";let p=e.map.subarray(r*e.lines,(r+1)*e.lines),w=p[m],o=p.reduce((h,g)=>h+ +(g>=0),0);return"Step "+_(u+1)+" at\
 "+N(f)+": "+Math.round(100*o/e.lines)+"% held; here "+(w<0?"free":"request "+(w+1))}function ot(e){let t=document.createElement("canvas").getContext("2d",{willReadFrequently:!0});
return t.fillStyle=e,t.fillRect(0,0,1,1),[...t.getImageData(0,0,1,1).data].slice(0,3)}var Gt=[["queued","waits"],["prefill","prefill"],["decode","decode"],["idle","idle slot or padding"],["cancelled","cancelled"]];function at(e,t,n){let s=[];function f(a){
e.replaceChildren(),s=a.arms.map((l,b)=>{let k=c("section","td-lane arm-"+l.name.toLowerCase()),i=c("h3","","");i.append(c("span","td-arm",l.name),c("b","",l.kind),
document.createTextNode(" "),u());let x=r("Slots at work","of "+a.slots+", by step"),v=r("Requests","by arrival, over seconds"),T=r("KV pages",l.kind==="continu\
ous"?"who holds them, over seconds":"");v.canvas.tabIndex=0,v.canvas.setAttribute("role","application"),v.canvas.setAttribute("aria-label","Gantt chart of the r\
equests of arm "+l.name+". Arrow keys choose a request, which is described below; the table of requests holds the same."),x.canvas.setAttribute("role","img"),x.
canvas.setAttribute("aria-label","Slots at useful work and idle slots of arm "+l.name+" by step; the figures above give their share."),T.canvas.setAttribute("ro\
le","img"),T.canvas.setAttribute("aria-label","Map of the KV pages of arm "+l.name+" by step: free, or held by which request."),T.figure.classList.toggle("td-ma\
p",l.kind==="continuous");let C=c("p","td-empty","");T.figure.append(C),k.append(i,x.figure,v.figure,T.figure),e.append(k);let y={i:b,slots:x,gantt:v,pages:T,none:C,
fields:{},view:null,hovered:-1};return m(y),y})}function u(){let a=c("span","td-legend");for(let[l,b]of Gt){let k=c("span","");k.append(c("i","td-key "+l),document.
createTextNode(b)),a.append(k)}return a}function r(a,l){let b=c("div","td-strip"),k=c("p","td-caption",""),i=c("canvas","");return k.append(c("b","",a),document.
createTextNode(" "+l)),b.append(k,i),{figure:b,canvas:i,caption:k}}function m(a){let l=(b,k)=>{let{canvas:i}=a[b];i.addEventListener("pointermove",x=>{let v=i.getBoundingClientRect(),
T=x.clientX-v.left,C=x.clientY-v.top;o(x,a.fields[b]&&a.view?k(T,C):"")}),i.addEventListener("pointerleave",()=>{t.hidden=!0,a.hovered>=0&&(a.hovered=-1,h(a))})};
l("slots",b=>tt(a.view.batch,a.view.slots,te(a.fields.slots,a.view.end,b))),l("pages",(b,k)=>st(a.fields.pages,a.view,b,k)),l("gantt",(b,k)=>{let i=p(a,k);return i!==
a.hovered&&(a.hovered=i,h(a)),i<0?"":w(a,i)}),a.gantt.canvas.addEventListener("click",b=>{let k=p(a,b.clientY-a.gantt.canvas.getBoundingClientRect().top);k>=0&&
n(k)}),a.gantt.canvas.addEventListener("keydown",b=>{if(!a.view)return;let k=a.view.asked.arrival_s.length-1,i=a.view.chosen,x={ArrowDown:i+1,ArrowUp:i-1,PageDown:i+
10,PageUp:i-10,Home:0,End:k}[b.key];x!==void 0&&(b.preventDefault(),n(Math.max(0,Math.min(k,x))))})}function p(a,l){let{gantt:b}=a.fields;return!b||l>=b.bottom?
-1:Math.max(0,Math.min(a.view.asked.arrival_s.length-1,Math.floor(l/b.high)))}function w(a,l){let{batch:b,asked:k,now:i,waits:x}=a.view;return $(l,b.rows.get(l),
k.arrival_s[l],i,x)}function o(a,l){if(t.hidden=!l,!l)return;M(t,l);let b=e.getBoundingClientRect(),k=Math.min(360,b.width-8);t.style.maxWidth=k+"px";let i=Math.
min(a.clientX-b.left+14,b.width-t.offsetWidth-4);t.style.left=Math.max(0,i)+"px",t.style.top=a.clientY-b.top+18+"px"}function h(a){let{view:l}=a;l&&(a.fields.slots=
et(a.slots.canvas,l),a.fields.gantt=$e(a.gantt.canvas,{...l,hovered:a.hovered}),a.pages.canvas.hidden=!l.pages.length,M(a.none,l.pages.length?"":l.paged?"The pa\
ges appear when the run begins.":"No pages: each static batch has one padded cache, as long as its longest request."),l.pages.length&&(a.fields.pages=rt(a.pages.
canvas,l)))}function g(a){s.forEach((l,b)=>{l.view=a[b],h(l)})}function d(){s=[],e.replaceChildren(),t.hidden=!0}return{build:f,paint:g,clear:d}}function it(e,t){let n=Math.min(e.length,t.length);for(let s=0;s<n;s++)if(e.charCodeAt(s)!==t.charCodeAt(s))return s;return-1}function dt(e,t){let n=[],s=null,f=null;function u(w,o){e.replaceChildren();let h=c("p","td-which",""),g=c("label","","Request ");s=c("input","td-request-number"),
Object.assign(s,{type:"number",min:1,max:o,value:1}),s.addEventListener("input",()=>{let d=Math.round(Number(s.value));d>=1&&d<=o&&t(d-1)}),g.append(s,document.
createTextNode(" of "+_(o))),f=c("span","td-same-tokens",""),h.append(g,f),e.append(h),n=w.arms.map(d=>{let a=c("section","arm-"+d.name.toLowerCase()),l=c("p","\
td-words",""),b=c("div","td-body",""),k=c("span","","");l.append(c("span","td-arm",d.name),k),l.setAttribute("role","status");let i=c("div","td-scroll");return i.
tabIndex=0,i.setAttribute("role","region"),i.setAttribute("aria-label","Text of the chosen request in arm "+d.name),i.append(b),a.append(l,i),e.append(a),{line:k,
body:b,shown:""}})}function r(w,o,h){if(!s)return;document.activeElement!==s&&Number(s.value)!==h+1&&(s.value=h+1);let g=w.map(k=>k.batch.rows.get(h)),d=g.map(k=>k?
k.text:""),a=g.length>1&&g.every(k=>k&&k.end!==null),l=a?it(d[0],d[1]):-1,b=o.differ[h];M(f,!a||g.some(k=>k.reason==="cancelled")?"":b===void 0?"Both arms gave \
it the same tokens.":"The arms differ from its token "+_(b)+" on (counted from 0)."),w.forEach((k,i)=>{M(n[i].line,$(h,g[i],k.asked.arrival_s[h],k.now,k.waits));
let x=JSON.stringify([d[i],l,h]);n[i].shown!==x&&(n[i].shown=x,m(n[i].body,d[i],l))})}function m(w,o,h){if(w.replaceChildren(),!o){w.append(c("span","td-empty",
"Its text appears when it is done."));return}if(h<0){w.append(document.createTextNode(o));return}let g=c("span","td-divergent"),d=c("mark","td-difference","≠");
d.title="The texts differ from here on.",g.append(document.createTextNode(o.slice(h))),w.append(document.createTextNode(o.slice(0,h)),d,g)}function p(){e.replaceChildren(),
n=[],s=f=null}return{build:u,show:r,clear:p}}var lt=(e,t)=>{let n=!1,s=!1,f=()=>{n=!0},u=()=>{n&&(n=!1,setTimeout(()=>{s&&!n&&(s=!1,t())}))};e.addEventListener("pointerdown",r=>{r.button===0&&f()}),e.addEventListener(
"keydown",r=>{r.key===" "&&f()});for(let r of["pointerup","pointercancel","keyup","blur"])window.addEventListener(r,u);return()=>{n?s=!0:t()}};var Ht={later:"not yet arrived",queued:"waits",prefill:"prefill",decode:"decode",done:"done",cancelled:"cancelled"};function ct(e,t,n){let s=null,f="",u=0,r=lt(
t,p);e.addEventListener("toggle",()=>{u=0,p()});function m(d,a,l){s={views:d,head:a,over:l},r()}function p(){if(!s||!e.open||!s.over&&performance.now()-u<1e3)return;
u=performance.now();let{views:d,head:a}=s,{asked:l}=d[0],b=d.length>1,k=l.arrival_s.map((A,R)=>o(d,a,R,b)),i=JSON.stringify(k);if(i===f)return;f=i;let x=c("tabl\
e",""),v=c("thead",""),T=c("tr",""),C=c("tbody",""),y=["Request","Arrives","Prompt","New tokens"],S=["state","waited","for","TTFT","per token","end to end","tok\
ens"];for(let A of y)T.append(w(A));for(let A of a.arms)for(let R of S)T.append(w(A.name+" "+R));b&&T.append(w("Same tokens")),v.append(T),k.forEach((A,R)=>{let O=c(
"tr","");A.forEach((ie,Lt)=>{if(Lt){O.append(c("td","",ie));return}let de=c("th",""),z=c("button","td-pick",ie);de.scope="row",z.type="button",z.setAttribute("a\
ria-label","Show request "+ie),z.addEventListener("click",()=>n(R)),de.append(z),O.append(de)}),C.append(O)}),x.append(v,C),t.replaceChildren(x)}function w(d){let a=c(
"th","",d);return a.scope="col",a}function o(d,a,l,b){let{asked:k}=d[0],i=[String(l+1),N(k.arrival_s[l]),_(k.prompt_tokens[l]),_(k.max_new_tokens[l])],x=d.every(
v=>v.batch.rows.get(l)?.end!=null);for(let{batch:v,now:T,waits:C}of d){let y=v.rows.get(l),S=k.arrival_s[l],A=ue(y,S),R=y?[...new Set(y.waits.map(([,O])=>C[O]||
O))]:[];i.push(Ht[fe(y,S,T)],h(A.waited),R.join(", then "),h(A.ttft),h(A.perToken),h(A.total),_(A.tokens))}return b&&i.push(x?a.differ[l]===void 0?"yes":"until \
token "+a.differ[l]:""),i}function h(d){return d===null?"–":d<1?(1e3*d).toPrecision(3)+" ms":N(d)}function g(){s=null,f="",t.replaceChildren()}return{take:m,clear:g}}var Ut="drawn slowly while this machine's own cores are measured",jt="Press Run: arm A serves all requests, then arm B serves the same ones, in pairs until it i\
s decided which serves more. When each request waits, is processed and ends, which slots stand idle and who holds which page of the KV cache appear here, with p\
roof that each choice took effect.",we=at(L(".td-lanes"),L(".td-tip"),ae),ke=dt(L(".td-chosen"),ae),ft=ct(L(".td-requests"),L(".td-request-rows"),ae),K=_e(L(".t\
d-progress")),ut=Pe(L(".td-sentence"),L(".td-basis"),L(".td-digest"),L(".td-unasked")),pt=Ne(L(".td-answer"),e=>Oe(e,"#batch-run","#batch-code-")),mt=Ie(L(".td-\
tiles")),ht=qe(L(".td-rows")),gt=Be(L(".td-ledger")),I=[],E=null,V=null,F="",be=-1,wt=0,he=0,H=!1,oe=0,re=!1,ge=0,xe=0,ne=Re(Wt,Vt,e=>M(L(".td-connection"),e));
async function Wt(){let e=++wt,t=F,n=I.length?I.map(He):[[0,0,0,0],[0,0,0,0]],s=JSON.parse(await server.pull({run:t,version:be,cur:n}));return s.seq=e,s}function Vt(e){
if(e.error)return Se(F,e.error),"over";if(e.run!==F||H)return H?"over":"wait";if(e.head&&e.seq>he&&(he=e.seq,Jt(e)),!E)return"wait";Te(e.status,e.queue),Ae(e.trouble),
ne.atLeast(e.every_ms);let t=!1;e.lanes.forEach((r,m)=>{t=Ue(I[m],r,E.arms[m].pages)||t}),(t||e.head)&&(re=!0);let[n,s,f]=settings.most,u=r=>r.n-r.first>=n||r.mn-
r.mfirst>=s||r.en-r.efirst>=f;return e.ended?(Kt(e),"over"):t&&e.lanes.some(u)?"more":"wait"}function Jt(e){let t=!E;E=e.head,be=e.version,V=E.asked||V,t&&(I=E.
arms.map(Ge),we.build(E),ke.build(E,V.arrival_s.length),K.build(E.arms),M(L(".td-empty-run"),""),J(!1)),M(L(".td-title"),E.title),M(L(".td-note"),E.note),M(L(".\
td-traffic"),E.traffic),K.take(E),ut.take(E,e.status),window.tokendynoAddress?.title("batching",E.heading),pt.take(E.card),L(".td-verdict").classList.toggle("td\
-carded",!!E.card),M(L(".td-sure"),E.card?E.card.confidence:""),M(L(".td-why"),E.why),mt.take(E.arms,E.differences),ht.take(E.arms),gt.take(E.arms,E.digest),Fe(
L(".td-remarks"),E.arms);let n=Ce(e.status,E.message);J(n&&!I.some(s=>s.steps.end.length)),kt(e.ended)}function kt(e){let t=!e&&E.quiet&&Le;ne.every(t?400:80),bt=
t?1e3:80,M(L(".td-pace"),t?Ut:"")}var bt=80;function Xt(){let e=Math.max(...I.map(B),V.arrival_s[0]),t=Xe(e,H);return I.map((n,s)=>({batch:n,asked:V,now:B(n),end:t,
chosen:oe,arm:s,slots:E.slots,waits:E.waits,pages:E.arms[s].pages,cacheBytes:E.arms[s].cache_bytes,paged:E.arms[s].kind==="continuous"}))}function se(){let e=performance.
now(),t=Xt();re=!1,we.paint(t),ke.show(t,E,oe),ft.take(t,E,H),ge=performance.now(),xe=ge-e}function ae(e){oe=e,E&&se()}function Kt(e){H=!0,kt(!0),K.tick(xt(),!0),
se(),element.dataset.over=e.run,trigger("finished",{run:e.run,status:e.status})}function xt(){return I.map(e=>{let t=0;for(let n of e.rows.values())t+=ce(n);return{
t:{length:t}}})}function vt(e){if(F=e||"",I=[],E=null,V=null,be=-1,he=wt,H=!1,oe=0,Ee(F,["traffic","pace","why","sure"]),window.dispatchEvent(new Event("tokendy\
no-run")),window.tokendynoAddress?.title("batching",""),L(".td-verdict").classList.remove("td-carded"),ut.clear(),pt.clear(),mt.clear(),ht.clear(),gt.clear(),K.
clear(),we.clear(),ke.clear(),ft.clear(),M(L(".td-empty-run"),F?"":jt),J(!0),ye(F),!F){ne.stop();return}ne.begin()}function Mt(){element.isConnected&&(E&&!H&&!document.
hidden&&K.tick(xt()),E&&re&&!document.hidden&&performance.now()-ge>Math.max(bt,4*xe)&&se(),setTimeout(Mt,100))}ve(()=>{re=!0});new ResizeObserver(()=>{E&&se()}).
observe(element);element.classList.add("td-batch");element.batch={get batches(){return I},get head(){return E},get paintMs(){return xe},choose:ae};watch("value",
()=>{(props.value||"")!==F&&vt(props.value)});vt(props.value);Mt();})();
