"use strict";(()=>{function h(e,t,n){let o=document.createElement(e);return t&&(o.className=t),n!==void 0&&(o.textContent=n),o}function U(e,t){e.textContent!==t&&(e.textContent=t)}function M(e){return element.querySelector(e)}function ae(e){return getComputedStyle(element).getPropertyValue(
e).trim()}function A(e){return e.toLocaleString("en-US")}function Je(e){return e>=100?Math.round(e)+" s":e.toFixed(e>=10?1:2)+" s"}function $e(e){return e>=4*2**
30?{unit:"GiB",scale:1/2**30}:e>=2*2**20?{unit:"MiB",scale:1/2**20}:{unit:"KiB",scale:1/1024}}var Ce=(e,t)=>{let n=!1,o=!1,r=()=>{n=!0},s=()=>{n&&(n=!1,setTimeout(()=>{o&&!n&&(o=!1,t())}))};e.addEventListener("pointerdown",a=>{a.button===0&&r()}),e.addEventListener(
"keydown",a=>{a.key===" "&&r()});for(let a of["pointerup","pointercancel","keyup","blur"])window.addEventListener(a,s);return()=>{n?o=!0:t()}};var V=["q","of","axis","machine","since","until"];function Qe(e){let t=new URLSearchParams(e),n=Object.fromEntries(V.map(o=>[o,t.get(o)||""]));return{...n,of:n.
of,at:t.get("at")||"1",pins:(t.get("pins")||"").split(",").filter(Boolean),beside:t.get("beside")==="1"}}function sn(e){return{...e,at:e.at==="1"?"":e.at,pins:e.
pins.join(","),beside:e.beside?"1":""}}var E=Qe(location.search);function Ze(){E=Qe(location.search)}function I(e,t){E={...E,...e},window.tokendynoAddress&&window.
tokendynoAddress.keep("history",sn(E),t),$()}function et(e,t){return e.id+"."+t.name}function Y(e){let t=new Date(1e3*e),n=o=>String(o).padStart(2,"0");return!e||
isNaN(Number(t))?"unknown":[t.getFullYear(),n(t.getMonth()+1),n(t.getDate())].join("-")+" "+n(t.getHours())+":"+n(t.getMinutes())}async function qe(e){try{return JSON.
parse(await e)}catch(t){throw new Error("The server does not answer. Nothing was changed: try again.",{cause:t})}}async function J(e){let t=await qe(server.ask(
e));if(t.error)throw new Error(t.error);return t}function q(e){U(M(".td-failure"),e?e.message:"")}var an=80,Q={};function ie(e,t,n){let o=h("label","td-field td-field-"+e);o.append(h("span","",t),n),n.name=e,Q[e]=n,M(".td-search").append(o)}function xe(e,t){
let n=h("input");return n.type=e,n.maxLength=200,t&&(n.placeholder=t),n}function ln(){let e=h("select");e.append(new Option("any",""));for(let t of settings.axes){
let n=h("optgroup");n.label=t.title;let o=t.choices.map(([r,s])=>new Option(t.title+": "+s,t.name+"="+r));n.append(new Option(t.title+" was set",t.name),...o),e.
append(n)}return e}ie("q","Search",xe("search","words of model, choices, prompt, verdict, name, note"));ie("of","Model",xe("search","part of its name"));ie("axi\
s","Axis",ln());ie("machine","Machine",xe("search","such as H200"));ie("since","From",xe("date"));ie("until","To",xe("date"));var Pe=h("button","td-clear","Clea\
r");Pe.type="button";M(".td-search").append(Pe);var tt=0;for(let[e,t]of Object.entries(Q)){let n=t.type==="search"?"input":"change";t.addEventListener(n,()=>{clearTimeout(
tt);let o=t.type==="search";tt=setTimeout(()=>I({[e]:t.value,at:"1",beside:!1},!o),o?an:0)})}M(".td-search").addEventListener("submit",e=>e.preventDefault());Pe.
addEventListener("click",()=>{I({...Object.fromEntries(V.map(e=>[e,""])),at:"1"},!0),Q.q.focus()});function nt(){for(let e of V)Q[e].value!==E[e]&&(Q[e].value=E[e],
e==="axis"&&Q[e].value!==E[e]&&(Q[e].append(new Option(E[e])),Q[e].value=E[e]));Pe.disabled=V.every(e=>!E[e])}function ye(e){let t=document.activeElement;return t instanceof HTMLElement&&e.contains(t)?t:null}var cn={File:"dyno",Report:"html",CSV:"csv",JSON:"json"},un={File:"The whole run as one file, which tokendyno reads again",Report:"One HTML file that opens offl\
ine",CSV:"Every token and memory sample",JSON:"Figures, ledger and series"};function ot(e){let t=h("td","td-save-as");if(e.status==="running")return t;for(let[n,
o]of Object.entries(cn)){if(e.kind!=="run"&&(o==="html"||o==="csv"))continue;let r=h("a","",n);r.href="files/"+encodeURIComponent(e.id)+"."+o,r.download="",r.title=
un[n],r.setAttribute("aria-label",n+" of "+te(e)+", "+Y(e.created)),t.append(r," ")}return t}async function dn(e){let t,n;try{t=await fetch("import",{method:"PO\
ST",headers:{"content-type":"application/octet-stream"},body:e}),n=await t.json()}catch(o){throw new Error("The server does not answer. Nothing was taken in: tr\
y again.",{cause:o})}if(!t.ok)throw new Error(n.detail);return n.run}var Ne=M(".td-import-file");M(".td-import").addEventListener("click",()=>Ne.click());Ne.addEventListener(
"change",async()=>{let[e]=Ne.files;if(e){try{let t=await dn(e);I({...Object.fromEntries(V.map(n=>[n,""])),q:t,at:"1"},!0)}catch(t){q(t)}Ne.value=""}});function rt(e){M(".td-edit")?.remove();let t=h("tr","td-edit"),n=h("td"),o=h("form");t.dataset.of=e.id;let r=h("input"),s=h("textarea");r.value=e.name,r.maxLength=
80,s.value=e.note,s.maxLength=2e3,s.rows=2;for(let[c,l]of[["Name",r],["Note",s]]){let g=h("label","");g.append(h("span","",c),l),o.append(g)}let a=h("button","t\
d-save","Save");a.type="submit";let i=()=>{t.remove(),le(e.id)?.querySelector(".td-edit-run")?.focus()};o.append(a,W("td-cancel","Cancel","",i)),o.addEventListener(
"keydown",c=>{c.key==="Escape"&&i()}),o.addEventListener("submit",async c=>{c.preventDefault();try{r.value!==e.name&&await J({ask:"change",what:"name",run:e.id,
text:r.value}),s.value!==e.note&&await J({ask:"change",what:"note",run:e.id,text:s.value})}catch(l){q(l);return}i(),$()}),n.colSpan=Ue.length,n.append(o),t.append(
n),le(e.id).after(t),r.select()}async function st(e){try{await J({ask:"change",what:e.shared?"unshare":"share",run:e.id})}catch(t){q(t);return}$()}async function at(e){
try{await J({ask:"change",what:"delete",run:e.id})}catch(o){q(o);return}let t=h("p","","Deleted: "+te(e)+", "+Y(e.created)+". "),n=W("td-undelete","Undo","Undo:\
 restore "+te(e)+", "+Y(e.created),()=>fn(e,t));t.append(n),M(".td-undo").append(t),I({pins:E.pins.filter(o=>!o.startsWith(e.id+"."))},!1),n.focus()}async function fn(e,t){
try{await J({ask:"change",what:"undelete",run:e.id})}catch(n){q(n);return}t.remove(),await $(),le(e.id)?.querySelector("a")?.focus()}function lt(e){let t=E.pins.includes(e);if(!t&&E.pins.length>=settings.most){q(new Error(settings.most+" arms are pinned, which is as many as can stand side by \
side. Unpin one first."));return}I({pins:t?E.pins.filter(n=>n!==e):[...E.pins,e]},!1)}function it(e){let t=e.indexOf(".");return ke.get(e)||e.slice(0,Math.min(8,
t))+" "+e.slice(t+1)}var ce=M(".td-tray"),we=Ce(ce,()=>{let{pins:e}=E,t=ye(ce)?.dataset.press;ce.hidden=!e.length;let n=e.length>=settings.fewest,o=e.map((i,c)=>{
let l=h("span","td-pinned arm-"+(c+1)),g=W("td-unpin","×","Unpin "+it(i),()=>{let m=E.pins.filter(y=>y!==i);I({pins:m,beside:E.beside&&m.length>=settings.fewest},
E.beside)});return g.dataset.press=i,l.append(h("b","td-arm",String(c+1)),h("span","",it(i)),g),l}),r=W("td-compare","Side by side","",()=>I({beside:!0},!0));r.
disabled=!n||E.beside,r.dataset.press="view";let s=W("td-unpin-all","Unpin all","",()=>I({pins:[],beside:!1},E.beside));if(s.dataset.press="none",ce.replaceChildren(
...o,r,s,h("span","td-hint",n?"":"Pin "+settings.fewest+" to "+settings.most+" arms, of any runs.")),!t)return;([...ce.querySelectorAll("button:enabled")].find(
i=>i.dataset.press===t)||ce.querySelector(".td-unpin")||Q.q).focus()});var ct={failed:"Failed",cancelled:"Stopped",interrupted:"Interrupted",running:"Under way"},pn={batch:"many requests",quality:"quality"},Ue=["When","Run","Arms: \
press to pin","Verdict","Save as","Change"],ke=new Map;function W(e,t,n,o){let r=h("button",e,t);return r.type="button",n&&r.setAttribute("aria-label",n),r.addEventListener(
"click",o),r}function ut(e){return[e.label||e.model,e.work].filter(Boolean).join(", ")}function te(e){return e.name||ut(e)}function mn(e){let t=h("th","td-name"),
n=h("a","",te(e));t.scope="row",n.href="?run="+encodeURIComponent(e.id);let o=[e.name?ut(e):"",e.machine,pn[e.kind]||"",e.origin,e.shared&&e.mine?"shared with t\
he team":"",e.owner?"of "+e.owner:""];return t.append(n,h("small","",o.filter(Boolean).join(" · "))),t}function hn(e){let t=h("td","td-arms-of");for(let n of e.
arms){let o=et(e,n),r=E.pins.includes(o);ke.set(o,te(e)+" "+n.name+": "+n.text);let s=W("td-pin","",n.name+" "+n.text+": pin, of "+te(e)+", "+Y(e.created),()=>lt(
o));s.setAttribute("aria-pressed",String(r)),s.dataset.pin=o,s.append(h("b","",n.name),document.createTextNode(" "+n.text)),t.append(s)}return t}function gn(e){
let t=h("td","td-line-of");return ct[e.status]&&t.append(h("b","td-ended "+e.status,ct[e.status]),document.createTextNode(" ")),t.append(document.createTextNode(
e.line===null&&e.status!=="running"?"…":e.line||"")),e.note&&t.append(h("small","td-note-of",e.note)),t}function xn(e,t){let n=h("td","td-change");if(!e.mine)
return n;let o=" "+te(e)+", "+Y(e.created);n.append(W("td-edit-run","Name, note","Name, note: of"+o,()=>rt(e))),t&&n.append(W("td-share",e.shared?"Unshare":"Sha\
re",(e.shared?"Unshare:":"Share with the team:")+o,()=>st(e)));let r=W("td-delete","Delete","Delete"+o,()=>at(e));return r.disabled=e.status==="running",n.append(
r),n}function le(e){return[...M(".td-runs").querySelectorAll("tr")].find(t=>t.dataset.run===e)}function dt(e,t){let n=M(".td-runs"),o=ye(n),r=h("table"),s=n.querySelector(
".td-edit"),a=o?.closest("tr")?[o.closest("tr").dataset.run,o.dataset.pin||o.className]:null,i=h("tr");i.append(...Ue.map(l=>{let g=h("th","",l);return g.scope=
"col",g}));let c=h("tbody");for(let l of e.rows){let g=h("tr"),m=h("td","td-when",Y(l.created));g.dataset.run=l.id,g.append(m,mn(l),hn(l),gn(l),ot(l),xn(l,t)),c.
append(g)}if(r.append(h("thead"),c),r.tHead.append(i),n.replaceChildren(r),n.hidden=!e.rows.length,s)le(s.dataset.of)?.after(s),o&&s.contains(o)&&o.focus();else if(a){
let l=le(a[0]);l&&[...l.querySelectorAll("button, a")].find(g=>(g.dataset.pin||g.className)===a[1])?.focus()}}function ft(e){let t=e.page*e.per_page,n=t+e.rows.
length,o=V.some(a=>E[a]),r=e.total===1?"1 run":A(e.total)+" runs",s=e.rows.length===e.total?r:"Runs "+A(t+1)+" to "+A(n)+" of "+A(e.total);o&&e.rows.length&&(s+=
", of "+A(e.kept)+" altogether"),U(M(".td-count"),e.rows.length?s:"")}function pt(e){let{found:t,kept:n}=e,o=M(".td-empty-run"),r="";n?!t.kept&&e.trouble?r="No \
kept run can be shown now.":t.kept?t.total?t.rows.length||(r="There is no page "+A(t.page+1)+": "+A(t.total)+" runs are on "+A(Math.ceil(t.total/t.per_page))+" \
pages."):r="None of "+A(t.kept)+" runs matches. Leave a filter out, or press Clear.":r=(e.notes&&e.notes+" ")+"No run is kept yet. Go to Compare and press Run: \
each run is kept, and found again here. Runs of the command line are kept here too.":r="Runs are kept in memory only here, so there is no history: start the app\
 with --history FILE.",U(o,r)}function mt(e){let t=M(".td-pages"),n=Math.ceil(e.total/e.per_page),o=e.page+1;t.hidden=n<2&&o===1;let r=(a,i)=>{let c=W("",a,"",()=>{
I({at:String(i)},!0),M(".td-runs").scrollIntoView({block:"nearest"})});return c.disabled=i<1||i>n||i===o,c},s=ye(t)?.textContent;t.replaceChildren(r("First",1),
r("Newer",Math.min(o-1,n)),h("span","","Page "+A(o)+" of "+A(n)),r("Older",o+1),r("Last",n)),s&&[...t.querySelectorAll("button")].find(a=>a.textContent===s&&!a.
disabled)?.focus()}function be(){return window.Plotly?Promise.resolve():window.tokendynoPlotly??=new Promise(e=>{let t=()=>{let n=document.createElement("script");n.src=settings.plotly,
n.addEventListener("load",()=>e()),n.addEventListener("error",()=>{n.remove(),setTimeout(t,1e3)}),document.head.append(n)};t()})}var yn=260,wn=e=>t=>getComputedStyle(e).getPropertyValue(t).trim(),ht=e=>e.replace(/[<>&]/g," ");async function gt(e,t,n){if(await new Promise(g=>setTimeout(g)),
await be(),!e.isConnected)return;let o=wn(e),r=o("--body-text-color-subdued"),s=o("--border-color-primary"),{xaxis:a,yaxis:i,...c}=n(o),l={gridcolor:s,linecolor:s,
zeroline:!1,fixedrange:!0,automargin:!0,title:{font:{size:11}}};Plotly.react(e,t(o),{height:yn,margin:{t:8,b:38,l:52,r:12},paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"\
rgba(0,0,0,0)",font:{color:r,size:11,family:o("--font")||"sans-serif"},showlegend:!1,dragmode:!1,hoverlabel:{font:{size:12}},xaxis:{...l,...a},yaxis:{...l,...i},
...c},{displayModeBar:!1,showTips:!1}),new ResizeObserver(()=>{e.clientWidth&&Plotly.Plots.resize(e)}).observe(e)}function je(e){return[...new Set(e.points.map(n=>n.alike))].flatMap(n=>e.points.filter(o=>o.front&&o.alike===n).sort((o,r)=>o.latency_s-r.latency_s))}function kn(e){
let t=je(e);return n=>n.mark||(n.front?String(t.indexOf(n)+1):"")}function bn(e,t){let n=Math.max(...t.points.map(d=>d.memory_bytes))>4294967296,o=n?2**-30:2**-20,
r=t.quality?Math.max(...t.points.map(d=>d.quality)):0,s=d=>d.latency_s*1e3,a=d=>d.memory_bytes*o,i=d=>9+(r?13*Math.sqrt((d.quality||0)/r):0),c=je(t),l=c.flatMap(
(d,w)=>w&&c[w-1].alike!==d.alike?[null,d]:[d]),g=t.points.filter(d=>!d.front),m=kn(t),y=(d,w,x)=>({x:d.map(s),y:d.map(a),mode:"markers+text",cliponaxis:!1,marker:{
size:d.map(i),color:x?w:"rgba(0,0,0,0)",line:{color:w,width:1.5}},text:d.map(m),textposition:"top center",textfont:{size:11,color:w},customdata:d.map(u=>ht(u.label+
": "+u.text)),hovertemplate:"%{customdata}<extra></extra>"});return gt(e,d=>[{x:l.map(w=>w&&s(w)),y:l.map(w=>w&&a(w)),mode:"lines",line:{color:d("--body-text-co\
lor-subdued"),width:1,dash:"dot"},hoverinfo:"skip"},y(g,d("--body-text-color-subdued"),!1),y(c,d("--body-text-color"),!0)],()=>({xaxis:{title:{text:"Time per to\
ken (ms)",font:{size:11}}},yaxis:{title:{text:"Peak memory ("+(n?"GiB":"MiB")+")",font:{size:11}}},margin:{t:22,b:38,l:52,r:24}}))}function xt(e,t){let n=(c,l,g)=>{
let m=document.createElement(l);return m.textContent=g||"",c.append(m),m},o=n(e,"figure"),r=je(t);o.className="td-pareto",n(o,"figcaption",t.quality?"Time, memo\
ry and quality":"Time and memory");let s=n(o,"div");s.className="td-plotted",s.setAttribute("aria-hidden","true");let a=new Set(t.points.map(c=>c.alike)).size>1?
" of the same sizes":"";n(o,"p","What no other"+a+" beats in "+(t.quality?"time, memory and "+t.quality+" together; a larger point has more of the last:":"time \
and memory together:"));let i=n(o,"ol");for(let c of r){let l=n(i,"li",c.label+": "+c.text);/^\d+$/.test(c.mark)&&(l.value=Number(c.mark))}bn(s,t)}var yt=e=>{new MutationObserver(()=>e()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};var wt=["t","lat","kvs","kvf"];function kt(){return{t:[],lat:[],kvs:[],kvf:[],st:[],sm:[],text:"",chars:0}}function bt(e){return[e.t.length,e.st.length,e.chars]}
function vt(e){return Object.fromEntries([...wt,"st","sm"].map(t=>[t,e[t].length]))}function Mt(e,t){let n={tokens:0,samples:0,added:""},o=e.t.length;if(t.first<=
o&&t.n>o){for(let s of wt){let a=e[s],i=t[s];for(let c=o-t.first;c<i.length;c++)a.push(i[c])}n.tokens=t.n-o}let r=e.st.length;if(t.sfirst<=r&&t.sn>r){for(let s=r-
t.sfirst;s<t.st.length;s++)e.st.push(t.st[s]),e.sm.push(t.sm[s]);n.samples=t.sn-r}if(t.cfirst<=e.chars&&t.cn>e.chars){let s=e.chars-t.cfirst;n.added=s?Array.from(
t.text).slice(s).join(""):t.text,e.text+=n.added,e.chars=t.cn}return n}function D(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<t?n=r+1:o=r}return n}function _t(e,t,n,o){let r=Math.max(0,n-t);if(r<=o)return Array.from({length:r},
(a,i)=>t+i);let s=2;for(;s*(o/2-2)<r;)s*=2;for(;;){let a=vn(e,t,n,s);if(a.length<=o)return a;s*=2}}function vn(e,t,n,o){let r=[t];for(let s=t-t%o;s<n;s+=o){let a=Math.
max(s,t),i=Math.min(s+o,n),c=[];for(let l of e){let g=Math.min(i,l.length);if(a>=g)continue;let m=a,y=a;for(let d=a+1;d<g;d++)l[d]<l[m]?m=d:l[d]>l[y]&&(y=d);c.push(
m,y)}c.sort((l,g)=>l-g);for(let l of c)l>r[r.length-1]&&r.push(l)}return r[r.length-1]!==n-1&&r.push(n-1),r}function ne(e,t,n){return e.at==="sample"?t==="second"?o=>n.st[o]:o=>de(n.t,n.st[o]):t==="second"?o=>n.t[o]:o=>o}function Ae(e,t,n,[o,r]){if(e.at==="sample"){let[
s,a]=t==="second"?[o,r]:[ue(n.t,o),ue(n.t,r)];return[D(n.st,s),D(n.st,a)]}return t==="second"?[D(n.t,o),D(n.t,r)]:[Math.floor(o),Math.ceil(r)]}function ze([e,t],n,o){
let r=o.filter(a=>a.t.length);if(!r.length)return null;let s=r.map(({t:a})=>n==="second"?[ue(a,e),ue(a,t)]:[de(a,e),de(a,t)]);return[Math.min(...s.map(a=>a[0])),
Math.max(...s.map(a=>a[1]))]}function Tt(e,{t},n){return!t.length||n>t[t.length-1]?null:e==="second"?n:n<t[0]?null:D(t,n)}function ue(e,t){if(!e.length)return 0;
let n=e.length-1,o=Math.min(n,Math.max(0,t)),r=Math.floor(o);return r===n?e[n]:e[r]+(o-r)*(e[r+1]-e[r])}function de(e,t){let n=D(e,t);return n===0?0:n>=e.length?
e.length-1:n-1+(t-e[n-1])/(e[n]-e[n-1])}var Mn=.98,_n=2,Tn=1.5,Sn=20;function St(e,t){let n=Float64Array.from(e.flatMap(s=>s.slice(t))).sort();if(n.length<Sn)return null;
let o=n[Math.floor(Mn*(n.length-1))];return n[n.length-1]>_n*o?Tn*o:null}var En={compile:["diamond","◆"],recompile:["diamond","◆"],graph_skip:["x","✕"],window:["triangle-down","▼"],cache:["square","■"],gc:["circle","●"],throttle:[
"star","★"],foreign:["cross","✚"]};function Et(e,t,{head:n,series:o,hidden:r,axis:s,ink:a}){let i=j(e)[0],c=X(i,n),l=[];return n.arms.forEach((g,m)=>{let y=o[m][i.column],d=new Map(g.marks.filter(
({token:u})=>u>=c&&u<y.length).reverse().map(u=>[u.token,u.kind]));if(!d.size)return;let w=[...d.keys()].sort((u,f)=>u-f),x=w.map(u=>En[d.get(u)][0]);l.push({...t,
mode:"markers",x:w.map(ne(i,s,o[m])),y:w.map(u=>y[u]*i.scale),marker:{symbol:x.map(u=>u+(m%2?"-open":"")),size:9,color:a,line:{width:1.2,color:a}},hoverinfo:"sk\
ip",showlegend:!1,visible:!r.has(g.name),meta:{chart:e.key,annotations:g.name}})}),l}var Ot=[{color:"#4269d0",dash:"solid"},{color:"#ff725c",dash:"5px,2.5px"},{color:"#3ca951",dash:"10px,3px"},{color:"#a463f2",dash:"9px,3px,2px,3px"},{color:"#9c\
6b4e",dash:"4px,2px,1px,2px,1px,2px"}];function Me(e,t){return Ot[(e.line??t)%Ot.length]}var Lt="1px,3px",On=400;function Ct(e,t){return e.flatMap((n,o)=>{let r={
xaxis:"x"+R(o),yaxis:"y"+R(o),type:"scatter",mode:"lines"};if(!t.head)return[{...r,x:[0,1],y:[0,1],line:{width:0},hoverinfo:"skip",showlegend:!1}];let s=t.part?
{...t,series:t.part}:t,a=_e(n,t),i=Cn(n,o,r,a,s);return n.annotations&&i.push(...Et(n,r,s)),t.tops&&t.tops[o]!==null&&i.push(...An(n,o,r,s)),i.push(In(n,o,r,t)),
i.concat(qn(n,o,r,a,t))})}function R(e){return e?e+1:""}function re(e){return e.replace(/[<>&]/g,"")}function X(e,t){return t.unit==="forward"?0:e.first}function j(e){
return e.lines.filter(t=>!t.curve)}function Fe(e,t,{head:n,series:o,axis:r,zoom:s}){let a=X(e[0],n),i=t.flatMap(g=>e.map(m=>o[g][m.column])),c=a,l=Math.max(0,...i.
map(g=>g.length));if(s){let[g,m]=Ae(e[0],r,o[t[0]],s);c=Math.max(c,g-1),l=Math.min(l,m+2)}return _t(i,c,l,On)}function De(e,t,{head:n,series:o}){return e.curve?
n.arms[t][e.curve]:o[t]}function Pt(e,t){let n=0;for(let o of e.lines)t.series.forEach((r,s)=>{let a=De(o,s,t);if(a)for(let i of a[o.column])i>n&&(n=i)});return n}
function Ln(e,{series:t}){let n=1/0;for(let o of j(e))for(let r of t)for(let s of r[o.column])s<n&&(n=s);return n<1/0?n:0}function Nt(e,t,n){return e.unit!=="by\
tes"?{unit:e.unit,scale:1}:n||$e(Pt(e,t))}function _e(e,t){let n=o=>t.series.some((r,s)=>{let a=De(o,s,t),i=a&&a[o.column];return i&&i.length&&i[i.length-1]>0});
return[...new Set(e.lines.filter(o=>o.kind&&n(o)).map(o=>o.kind))]}function Cn(e,t,n,o,r){let{head:s,series:a,hidden:i,axis:c,ended:l}=r,{scale:g}=r.units[t],m=[],
y=j(e),d=a.map((f,p)=>p),x=y[0].at==="token"&&c==="token"?d.map(()=>Fe(y,d,r)):d.map(f=>Fe(y,[f],r)),u=(f,p,b,k)=>{let v=s.arms[p].name,_=Me(s.arms[p],p);m.push(
{...n,x:b,y:k,name:re([v,f.kind,f.label].filter(Boolean).join(" ")),showlegend:!1,hoverinfo:"skip",visible:![v,f.kind,f.label].some(S=>S&&i.has(S)),meta:{chart:e.
key,arm:v,kind:f.kind,curve:f.curve},line:{width:f.width,color:_.color,dash:f.curve?Lt:_.dash},opacity:f.curve?.9:1})};for(let f of e.lines)for(let p of d){if(f.
kind&&!o.includes(f.kind))continue;let b=De(f,p,r),k=f.scale*g;if(!b)continue;let v=b[f.column];if(f.curve&&f.at==="sample"){let S=c==="second"?b.x:b.x.map(C=>C===
null?null:de(a[p].t,C));u(f,p,S,v.map(C=>C===null?null:C*k));continue}if(f.curve){let S=Be(f,s.arms[p]),{t:C}=a[p];if(c==="token"){let z=l?Math.max(...a.map(H=>H.
t.length))-1+S:1/0,G=Nn(b.x,z);u(f,p,G.map(H=>H-S),G.map(H=>ve(b.x,v,H)*k));continue}let B=Fe(Pn,[p],r).filter(z=>z+S>=b.x[0]);u(f,p,B.map(z=>C[z]),B.map(z=>ve(
b.x,v,z+S)*k));continue}let _=x[p].filter(S=>S<v.length);u(f,p,_.map(ne(f,c,b)),_.map(S=>v[S]*k))}return m}var Pn=[{at:"token",column:"lat",first:0}];function Be(e,t){
return e.at==="length"?t.prompt_tokens:0}function Nn(e,t){let n=e.filter(o=>o<=t);return n.length&&n.length<e.length&&n[n.length-1]<t?[...n,t]:n}function ve(e,t,n){
let o=D(e,n);return o===0||o>=e.length?t[o?e.length-1:0]:t[o-1]+(t[o]-t[o-1])*(n-e[o-1])/(e[o]-e[o-1])}function An(e,t,n,o){let{head:r,series:s,hidden:a,axis:i,
tops:c}=o,{unit:l,scale:g}=o.units[t],[m]=j(e);return r.arms.map((y,d)=>{let w=s[d][m.column],x=m.scale*g,u=[];for(let f=X(m,r);f<w.length;f++)w[f]*x>c[t]&&u.push(
f);return{...n,mode:"markers",x:u.map(ne(m,i,s[d])),y:u.map(()=>.985*c[t]),showlegend:!1,visible:!a.has(y.name),cliponaxis:!1,marker:{symbol:"triangle-up"+(d%2?
"-open":""),size:7,color:Me(r.arms[d],d).color},hoverinfo:"skip",text:u.map(f=>(w[f]*x).toPrecision(3)+" "+l),meta:{chart:e.key,outliers:y.name}}})}function At(e,t,{
head:n,series:o,ended:r,axis:s,zoom:a,units:i},c){let l=e.lines.find(p=>p.curve==="floor"),g=l?n.arms.map((p,b)=>[p,o[b]]).filter(([{floor:p}])=>p&&p[l.column].
length):[];if(!g.length)return[];let{unit:m,scale:y}=i[t],d=g.map(([{floor:p},{t:b}])=>{let k=a?a[1]:r&&s==="token"?Math.max(...o.map(_=>_.t.length))-1:1/0,v=s===
"second"?de(b,k):k;return ve(p.x,p[l.column],v)*l.scale*y}),w=d.map(p=>Number(p.toPrecision(3))),u=Math.max(...d)<1.1*Math.min(...d)?w[0]:g.map(([p],b)=>re(p.name)+
" "+w[b]).join(", "),f=g.filter(([{floor:p}])=>p.exchanges).map(([{name:p,floor:b}])=>", exchanges of "+re(p)+" "+b.exchanges).join("");return[{text:"roofline b\
ound "+u+" "+m+f,showarrow:!1,xref:"x"+R(t)+" domain",yref:"y"+R(t),x:1,y:Math.max(...d),xanchor:"right",yanchor:"bottom",font:{size:10,color:c}}]}var Rn=.25;function In(e,t,n,o){
let{head:r,series:s,ended:a,axis:i}=o,{scale:c}=o.units[t],l=[0,Math.max(1,a?Math.max(...s.map(x=>x.t.length)):r.max_new_tokens)];if(i==="second"){let x=Math.max(
0,...s.flatMap(({t:f,st:p})=>[f,p].filter(b=>b.length).map(b=>b[b.length-1]))),u=10**Math.floor(Math.log10(Math.max(1,x)));l=[0,a?x:Math.ceil((x+u/10)/u)*u]}let g=e.
unit==="bytes"?Pt(e,o)*c:0,m=e.min_span*g,y=e.from_zero?0:Ln(e,o)*c,d=a?g:g+Rn*(g-y),w=[y-m/4,Math.max(d,y+3*m/4)];return{...n,x:l,y:w,line:{width:0},hoverinfo:"\
skip",showlegend:!1,meta:{chart:e.key,extent:!0}}}function qn(e,t,n,o,{head:r,hidden:s,neutral:a}){let i=(m,y,d)=>({...n,x:[null],y:[null],name:re(m),line:y,legend:d,
showlegend:!0,hoverinfo:"skip",visible:s.has(m)?"legendonly":!0,meta:{legend:m}}),c="legend"+R(t),l=t?[]:r.arms.map((m,y)=>i(m.name,{width:2,...Me(r.arms[y],y)},
c));for(let m of o){let{width:y}=j(e).find(d=>d.kind===m);l.push(i(m,{width:y,color:a},c))}let g=m=>m.curve&&(!m.kind||o.includes(m.kind))&&r.arms.some(y=>y[m.curve]);
for(let m of new Set(e.lines.filter(g).map(y=>y.label)))l.push(i(m,{width:1.2,color:a,dash:Lt},c));return l}function Un(e,t,n,o){let{t:r,st:s}=n;if(e.at==="sample"){let i=t.second??(t.token<r.length?ue(r,t.token):1/0),c=D(s,i);return!s.length||i>Math.max(s[s.length-1],
r.length?r[r.length-1]:0)?null:c>0&&(c>=s.length||i-s[c-1]<s[c]-i)?c-1:c}let a=t.token??D(r,t.second);return a>=o&&a<r.length?a:null}function Re(e){return e.toLocaleString(
"en-US",{maximumSignificantDigits:4})}function jn({x:e},t,n){let o=[],r=null;return e.forEach((s,a)=>{s===null?(o.push(t[r]),r=null):(r===null||Math.abs(s-n)<Math.
abs(e[r]-n))&&(r=a)}),o}function Rt(e,t,n,o){let{head:r,series:s,hidden:a}=o,{unit:i,scale:c}=o.units[t],l=_e(e,o),g=w=>!w.kind||l.includes(w.kind),[m]=e.lines.
filter(w=>!w.curve),y=j(e).filter(g),d=e.lines.filter(w=>w.curve&&w.at!=="sample"&&g(w));return r.arms.flatMap((w,x)=>{let u=Un(m,n,s[x],X(m,r));if(u===null||a.
has(w.name)||!y.length)return[];let f=y.map(k=>s[x][k.column][u]*k.scale*c),p=[f.map((k,v)=>Re(k)+(y.length>1?" "+y[v].kind:"")).join(" + ")+" "+i],b=d.filter(k=>w[k.
curve]);if(b.length){let k=b.reduce((_,S)=>_+ve(w[S.curve].x,w[S.curve][S.column],u+Be(S,w))*S.scale*c,0),v=Math.abs(k-f.reduce((_,S)=>_+S,0))<5e-4*k;p.push(b[0].
curve==="floor"?"roofline bound "+Re(k):v?"as predicted":"predicted "+Re(k))}for(let k of e.lines.filter(v=>v.curve&&v.at==="sample"&&w[v.curve])){let v=jn(w[k.
curve],w[k.curve][k.column],s[x].st[u]);p.push(k.label+" "+v.map(_=>Re(_*k.scale*c)).join(", "))}return m.at==="token"&&n.token===void 0&&p.push(Ie(r)+" "+A(u)),
e.lines.some(k=>k.at==="length")&&p.push(A(w.prompt_tokens+u)+" tokens cached"),[{arm:w.name,text:p.join(", ")}]})}function Ie(e){return e.unit==="forward"?"pas\
s":"token"}function It(e,t,n,o,{head:r,series:s,hidden:a,axis:i,units:c,tops:l}){let[g]=j(e),m=X(g,r),y=l[t]===null?1/0:l[t]/g.scale/c[t].scale,d=null,w=o;return e.
annotations&&r.arms.forEach((x,u)=>{if(a.has(x.name))return;let f=s[u][g.column],p=new Set(x.marks.map(_=>_.token)),b=ne(g,i,s[u]),[k,v]=Ae(g,i,s[u],[n-o,n+o]);
for(let _=Math.max(m,k);_<=Math.min(v,f.length-1);_++){let S=Math.abs(b(_)-n);S<=w&&(p.has(_)||f[_]>y)&&(w=S,d=b(_))}}),i==="second"?{second:Math.max(0,d??n)}:{
token:d??Math.max(0,Math.round(n))}}function qt(e,{head:t,series:n,hidden:o}){return t.arms.flatMap((r,s)=>{let a=e.token??D(n[s].t,e.second);return o.has(r.name)?
[]:r.marks.filter(i=>i.token===a&&a<n[s].t.length).map(i=>r.name+" "+Ie(t)+" "+A(a)+": "+i.text)})}var zn=5;function Ut(e,t,n,o){let r=null,s=null,a=null,i=x=>[e._fullLayout["xaxis"+R(x)],e._fullLayout["yaxis"+R(x)]];function c(x){let u=e.getBoundingClientRect(),
f=x.clientX-u.left,p=x.clientY-u.top;for(let b=0;b<o.length;b++){let[k,v]=i(b);if(f<k._offset||f>k._offset+k._length||p<v._offset||p>v._offset+v._length)continue;
let _=f-k._offset;return{i:b,x:k.p2l(_),reach:Math.abs(k.p2l(_+zn)-k.p2l(_))}}return null}function l(x){let u=a&&a.head&&e._fullLayout?c(x):null;r=u&&It(o[u.i],
u.i,u.x,u.reach,a),w()}function g(){r&&(r=null,w())}function m(x,u,f){let[p,b]=i(x);if(u===null||u<p.range[0]||u>p.range[1])return[];let k=h("i","td-moment "+f);
return Object.assign(k.style,{left:p._offset+p.l2p(u)+"px",top:b._offset+"px",height:b._length+"px"}),[k]}function y(x,u,f){let[p,b]=i(x),k=h("span","td-place",
f),v=Math.min(p._length,Math.max(0,p.l2p(u)));return Object.assign(k.style,{left:p._offset+v+"px",top:b._offset+b._length+1+"px",transform:"translateX(-"+100*v/
p._length+"%)"}),k}function d(x,u){let f=Rt(o[x],x,u,a),[p,b]=i(x);if(!f.length)return[];let k=h("div","td-readout");Object.assign(k.style,{left:p._offset-4+"px",
width:p._length+8+"px",bottom:"calc(100% - "+b._offset+"px)"}),a.titles[x]&&k.append(h("strong","",a.titles[x]));for(let{arm:v,text:_}of f){let S=h("span","arm-"+
v.toLowerCase());S.append(h("b","td-arm",v),document.createTextNode(_)),k.append(S)}return[k]}function w(){let x=r||(s===null?null:{second:s}),u=[],f=x&&a&&a.head&&
e._fullLayout&&e._fullLayout.xaxis;f&&o.forEach((b,k)=>{if(!a.series.some(_=>_.t.length||_.st.length))return;let v=r?r.token??r.second:a.axis==="second"?s:null;
r?u.push(...m(k,v,"")):a.series.forEach((_,S)=>u.push(...m(k,Tt(a.axis,_,s),"arm-"+a.head.arms[S].name.toLowerCase()))),v!==null&&u.push(y(k,v,a.axis==="second"?
Je(v):Ie(a.head)+" "+A(v))),u.push(...d(k,x))}),t.replaceChildren(...u);let p=f?qt(x,a):[];n.hidden=!p.length,n.replaceChildren(...p.map(b=>h("span","",b)))}return e.
addEventListener("pointermove",l),e.addEventListener("pointerdown",x=>x.pointerType==="touch"?l(x):g()),e.addEventListener("pointerleave",g),{take(x){a=x,(r||s!==
null)&&w()},pointAt(x){s=x,w()},clear(){r=null,s=null,a=null,w()}}}function jt(e,t,n){let o=null,r=[];function s(){o=null,r=[],t.replaceChildren()}function a(m,y){s(),m.head&&(o=m,r=n.map((d,w)=>c(d,w,y)),l())}function i(m){return o&&
(o={...o,series:m}),l()}function c(m,y,d){let w=e._fullLayout["xaxis"+R(y)],x=e._fullLayout["yaxis"+R(y)],u=window.devicePixelRatio,f=h("canvas",""),p=f.getContext(
"2d"),b=_e(m,o);f.width=Math.ceil(w._length*u),f.height=Math.ceil(x._length*u),Object.assign(f.style,{left:w._offset+"px",top:x._offset+"px",width:w._length+"px",
height:x._length+"px"}),p.scale(u,u),t.append(f);let k=j(m).filter(v=>!v.kind||b.includes(v.kind)).flatMap(v=>o.series.map((_,S)=>({line:v,a:S,next:Math.max(X(v,
o.head),d[S][v.column]-1),drawnPx:0,shown:![o.head.arms[S].name,v.kind].some(C=>C&&o.hidden.has(C))})));return{x:w,y:x,pen:p,lines:k,scale:o.units[y].scale}}function l(){
return o?r.map(g).some(Boolean):!1}function g({x:m,y,pen:d,lines:w,scale:x}){let u=!1;for(let f of w){let{line:p,a:b}=f,k=o.series[b][p.column],v=k.length;if(!f.
shown||v-f.next<2)continue;let _=ne(p,o.axis,o.series[b]),S=Me(o.head.arms[b],b),C=m.l2p(_(f.next)),B=y.l2p(k[f.next]*p.scale*x),z=f.drawnPx;d.beginPath(),d.moveTo(
C,B);for(let G=f.next+1;G<v;G++){let H=m.l2p(_(G)),K=y.l2p(k[G]*p.scale*x);d.lineTo(H,K),z+=Math.hypot(H-C,K-B),C=H,B=K,u=u||m.autorange&&C>m._length||y.autorange&&
(B<0||B>y._length)}d.strokeStyle=S.color,d.lineWidth=p.width,d.setLineDash(S.dash==="solid"?[]:S.dash.split(",").map(parseFloat)),d.lineDashOffset=f.drawnPx,d.stroke(),
f.next=v-1,f.drawnPx=z}return u}return{take:a,follow:i,draw:l,clear:s}}var Fn=760,Dn=250,Bn=420,Hn=40,Wn=()=>Math.round(Math.min(420,Math.max(200,.26*window.innerHeight))),Xn={responsive:!0,displaylogo:!1,showTips:!1,showSendToCloud:!1,
displayModeBar:!1};function zt(e,t,n,o,r){let s="",a=null,i=[],c=null,l=[],g=[],m=[],y=new Set,d=!1,w=0,x="token",u=null,f=0,p=!1,b=!1,k=!1,v=!1,_=!0,S=!1,C=0,B=0,
z=10,G=300,H=1e3,K=[],Xe=[];function Vt(T){T&&nn(),s=T,a=null,i=[],c=null,l=[],y=new Set,d=!1,_=!0,u=null,p=!1,o.clear(),r.clear()}function Yt(T){t.forEach((L,P)=>{
let O="xaxis"+R(P),N=T[O+".range"]||[T[O+".range[0]"],T[O+".range[1]"]];T[O+".autorange"]?u=null:a&&N[0]!==void 0&&(u=N.map(Number))}),me()}function me(){_=!0,se(
!0)}function Kt(T){T!==x&&(x=T,u=u&&ze(u,x,i),me())}function Jt(T,L){if(!a||p||T.unit!=="ms")return null;let[P]=j(T),O=St(i.map(N=>N[P.column]),X(P,a));return O===
null?null:O*P.scale*l[L].scale}function $t(T,L){if(!a||!c||T.unit!=="ms")return null;let[P]=j(T),O=X(P,a),N=i.reduce((oe,Se)=>Se[P.column].slice(O).reduce((Z,ee)=>Math.
max(Z,ee),oe),0);return N?1.05*N*P.scale*l[L].scale:null}function Qt(){let T={head:a,series:i,part:c,ended:d,hidden:y,axis:x,zoom:u,ink:ae("--body-text-color"),
neutral:ae("--body-text-color-subdued")};l=t.map((O,N)=>a?Nt(O,T,u&&l[N]):null),g=t.map(Jt),n.outliers.hidden=!p&&g.every(O=>O===null),n.outliers.setAttribute("\
aria-pressed",String(p)),U(n.outliers,p?"Cut outliers off":"Show outliers in full"),n.whole.hidden=u===null;for(let O of n.axes.children)O.setAttribute("aria-pr\
essed",String(O.dataset.axis===x));U(n.axes.firstElementChild,a&&a.unit==="forward"?"Passes":"Tokens");let L=Ct(t,{...T,units:l,tops:g}),P=L.filter(O=>!O.meta?.
extent&&O.y.some(Number.isFinite)).map(O=>O.yaxis);return m=t.map((O,N)=>!c&&!P.includes("y"+R(N))),L}function Zt(){let T=element.clientWidth<Fn,L=t.length,P=T?
.13:.05,O=(1-P*(L-1))/L,N=element.clientWidth*(T?1:O)<Bn,oe=ae("--body-text-color"),Se=ae("--border-color-primary"),Z={uirevision:s+"/"+f,datarevision:++w,paper_bgcolor:"\
rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:oe,size:11,family:ae("--font")||"sans-serif"},height:T?Dn*L:Wn(),margin:{t:N?56:36,b:34,l:44,r:8,autoexpand:!1},
hovermode:!1,dragmode:"zoom",annotations:[]};return t.forEach((ee,F)=>{let Ee=F*(O+P),he=T?[0,1]:[Ee,Ee+O],ge=T?[1-Ee-O,1-Ee]:[0,1],Ve=ee.unit==="bytes"?l[F]&&l[F].
unit:ee.unit,Oe=a&&a.unit==="forward"&&ee.encoder||ee,Le=re(Oe.title||(a?a.memory_label:"memory")).slice(0,Hn),Ye=g[F]??$t(ee,F);Xe[F]=N?"":Le[0].toUpperCase()+
Le.slice(1);let Ke={gridcolor:Se,zeroline:!1,linecolor:Se,ticks:"",automargin:!1,showticklabels:!!a&&!Oe.note};Z["xaxis"+R(F)]={...Ke,domain:he,anchor:"y"+R(F),
uirevision:[s,f,x].join("/"),...u?{range:[...u],autorange:!1}:{},title:{text:x==="second"?"seconds":a&&a.unit==="forward"?"forward pass":"token",standoff:2},nticks:6},
Z["yaxis"+R(F)]={...Ke,domain:ge,anchor:"x"+R(F),rangemode:ee.from_zero?"tozero":"normal",nticks:6,tickformat:",~r",...Ye===null?{}:{range:[0,Ye],autorange:!1},
...m[F]?{showticklabels:!1}:{}},a&&Z.annotations.push(...At(ee,F,{head:a,series:i,ended:d,axis:x,zoom:u,units:l},oe)),Z.annotations.push({text:"<b>"+Le[0].toUpperCase()+
Le.slice(1)+"</b>"+(Ve?", "+Ve:""),showarrow:!1,xref:"paper",yref:"paper",x:he[0],y:ge[1],xanchor:"left",yanchor:"bottom",yshift:N?32:4,xshift:-4,font:{size:12}}),
Oe.note&&Z.annotations.push({text:re(Oe.note),showarrow:!1,xanchor:"center",xref:"paper",yref:"paper",x:(he[0]+he[1])/2,y:(ge[0]+ge[1])/2});let rn={orientation:"\
h",x:he[N?0:1],y:ge[1],xanchor:N?"left":"right",yanchor:"bottom",bgcolor:"rgba(0,0,0,0)",font:{size:11},itemwidth:30};Z["legend"+R(F)]=rn}),Z}async function se(T){
if(!k||!_||S||document.hidden||!T&&performance.now()<C||!element.offsetParent)return;_=!1;let L=performance.now(),P=c||i,O=P.map(vt),N=Qt(),oe={head:a,series:i,
hidden:y,axis:x,units:l,tops:g,titles:Xe};S=!0;try{await Plotly.react(e,N,Zt(),Xn)}finally{S=!1}on(),oe.series===i&&(o.take(oe),r.take({...oe,series:P},O)),requestAnimationFrame(
()=>setTimeout(()=>{K.push(performance.now()-L),K.length>5&&K.shift(),B=performance.now()+G,C=performance.now()+Math.max(G,Math.min(H,Math.min(...K)*z)),window.
tokendynoProbe&&window.tokendynoProbe.painted(K[K.length-1])},0)),Ge()}function en(){_=!0,r.draw()&&(C=Math.min(C,B)),Ge()}function Ge(){if(!window.tokendynoProbe||
S||!a)return;let T=i.map(L=>L.t.length);requestAnimationFrame(()=>setTimeout(()=>window.tokendynoProbe.shows(T),0))}function tn(T){let L=T.data[T.curveNumber].meta.
legend;return y.delete(L)||y.add(L),me(),!1}async function nn(){b||(b=!0,await be(),k=!0,setInterval(()=>{element.isConnected&&se(!1)},33),se(!0))}function on(){
if(!v){v=!0,e.on("plotly_relayout",Yt),e.on("plotly_legendclick",tn),e.on("plotly_legenddoubleclick",()=>!1),n.outliers.addEventListener("click",()=>{p=!p,me()});
for(let T of n.axes.children)T.addEventListener("click",()=>Kt(T.dataset.axis));n.whole.addEventListener("click",()=>{u=null,f++,me()})}}return{reset:Vt,take(T,L){
a=T,i=L,_=!0},end(){d=!0,_=!0,se(!0)},async picture(T){return await be(),Plotly.downloadImage(e,{format:"png",filename:T,scale:2,width:e.clientWidth,height:e.clientHeight})},
get zoom(){return u&&(x==="token"?u:ze(u,"token",i))},grow:en,only(T){if(c===T)return;let L=c&&T&&T.every((P,O)=>P.t.length>=c[O].t.length);c=T,_=!0,L&&r.follow(
T)&&(C=Math.min(C,B)),se(!L)},touch(){_=!0,se(!1)},pace(T,L,P){z=T,G=L,H=P}}}var Gn=Ut(M(".td-plot"),M(".td-moments"),M(".td-noted"),settings.charts),Vn=jt(M(".td-plot"),M(".td-fresh"),settings.charts),Yn={outliers:M(".td-outliers"),axes:M(
".td-axis"),whole:M(".td-whole")},pe=zt(M(".td-plot"),settings.charts,Yn,Gn,Vn),fe=new Map,Kn=8;async function Jn(e){if(fe.has(e))return fe.get(e);let t=[],n=null,
o=-1;for(;;){let r=t.length?t.map(bt):[],s=await qe(server.pull({run:e,version:o,cur:r}));if(s.error)return null;s.head&&(n=s.head,o=s.version,t.length||(t=n.arms.
map(kt)));let a=0;if(s.lanes.forEach((i,c)=>{a+=Mt(t[c],i).tokens}),s.ended||!a){let i={head:n,series:t};return s.ended&&fe.set(e,i),fe.size>Kn&&fe.delete(fe.keys().
next().value),i}}}async function Ft(e,t){U(M(".td-drawn"),"");let n=await Promise.all(e.map(async({run:l,arm:g,label:m})=>{let y=await Jn(l),d=y&&y.head?y.head.
arms.findIndex(w=>w.name===g):-1;return d<0||!y.series[d].t.length?{label:m}:{label:m,head:y.head,arm:y.head.arms[d],series:y.series[d]}}));if(!t())return;let o=n.
filter(l=>l.head),r=o.length?o[0].head.unit:"token",s=o.filter(l=>l.head.unit===r),a=n.filter(l=>!s.includes(l)).map(l=>l.label);if(U(M(".td-drawn"),a.length?"N\
ot drawn: "+a.join(", ")+" (no "+(r==="forward"?"forward passes":"tokens of one prompt")+" were timed)":""),M(".td-stage").hidden=!s.length,!s.length)return;let i=new Set(
s.map(l=>l.head.memory_label)),c={unit:r,memory_label:i.size===1?[...i][0]:"memory",max_new_tokens:Math.max(...s.map(l=>l.head.max_new_tokens)),arms:s.map(l=>({
...l.arm,name:l.label,line:Number(l.label)-1}))};pe.reset(e.map(l=>l.pin).join()),pe.take(c,s.map(l=>l.series)),pe.end()}M(".td-png").addEventListener("click",()=>pe.
picture("tokendyno-pins"));yt(()=>pe.touch());new ResizeObserver(()=>pe.touch()).observe(element);var $n={conditions:"Ran under",choices:"Choices that differ",figures:"Measured",ledger:"Proof",text:"Texts"},He="";function Dt(){He=""}function Qn(e){let t=h("t\
h","arm-"+e.label),n=h("a","",e.title);return t.scope="col",n.href="?run="+encodeURIComponent(e.run),t.append(h("b","td-arm",e.label),n,h("small","","arm "+e.arm+
", "+Y(e.created)),h("small","",e.choices)),t}function Zn(e){let t=h("tr",e.group==="conditions"&&e.differs?"td-differs":""),n=h("th","",e.label);return n.scope=
"row",e.group==="conditions"&&e.differs&&n.append(h("small","","≠ differs")),t.append(n,...e.cells.map((o,r)=>{let s=h("td","",o.text);return s.dataset.arm=r+
1,o.against&&s.append(h("small","td-against",o.against)),o.note&&s.append(h("small","",o.note)),s})),t}function eo(e){let t=h("table"),n=h("tr");n.append(h("td"),
...e.arms.map(Qn)),t.append(h("caption","td-hidden","Pinned arms, figure by figure"),h("thead")),t.tHead.append(n);for(let[o,r]of Object.entries($n)){let s=e.rows.
filter(l=>l.group===o);if(!s.length)continue;let a=h("tbody","td-"+o),i=h("tr"),c=h("th","td-group",r);c.colSpan=e.arms.length+1,c.scope="rowgroup",i.append(c),
a.append(i,...s.map(Zn)),t.append(a)}M(".td-side").replaceChildren(t)}async function Bt(e){let t=E.pins.join(),n;try{n=await J({ask:"beside",pins:t})}catch(o){e()&&
(q(o),M(".td-beside").hidden=!0);return}if(e()){q(n.missing.length?new Error("Not kept here (any more): "+n.missing.join(", ")+"."):null),M(".td-said").replaceChildren(
...n.remarks.map(o=>h("li","",o)));for(let o of n.arms)ke.set(o.pin,o.title+" "+o.arm+": "+o.choices);we(),eo(n),M(".td-beside").hidden=!1,M(".td-front").replaceChildren(),
n.pareto&&xt(M(".td-front"),n.pareto),t!==He&&M(".td-back").focus(),He=t;try{await Ft(n.arms,e)}catch(o){e()&&q(o)}}}M(".td-back").addEventListener("click",()=>I(
{beside:!1},!0));var to=500,Xt=2e3,Ht=0,We=0,Te=null;async function $(){let e=++Ht,t=()=>e===Ht;if(clearTimeout(We),!element.offsetParent)return;nt(),we();let n=E.beside&&E.pins.
length>0;if(M(".td-list").hidden=n,M(".td-search").hidden=n,n){await Bt(t);return}M(".td-beside").hidden=!0,Dt(),await no(t)}async function no(e){let{at:t,of:n,
...o}=E,r={model:n};for(let i of V)i!=="of"&&(r[i]=o[i]);let s;Te===null&&U(M(".td-count"),"Reading the history…");try{s=await J({ask:"find",fields:r,page:t,zone:-new Date().
getTimezoneOffset()})}catch(i){e()&&(q(i),Te===null&&U(M(".td-count"),""));return}if(!e())return;q(null),U(M(".td-unkept"),s.trouble?"▲ "+s.trouble:""),M(".td\
-take-in").hidden=!(s.imports&&s.kept),Te=s,oo();let a=s.found.rows.some(i=>i.line===null&&i.status!=="running");(a||s.found.rows.some(i=>i.status==="running"))&&
(We=setTimeout(Gt,a?to:Xt))}function Gt(){M(".td-edit")?We=setTimeout(Gt,Xt):document.hidden||$()}var oo=Ce(M(".td-list"),()=>{let{found:e,team:t}=Te;dt(e,t),we(),
ft(e),pt(Te),mt(e),element.dataset.shown=String(e.total)});element.classList.add("td-history");window.addEventListener("popstate",()=>{new URLSearchParams(location.
search).get("view")==="history"&&(Ze(),$())});document.addEventListener("visibilitychange",()=>{document.hidden||$()});var Wt=0;new ResizeObserver(e=>{let t=Math.
round(e[0].contentRect.width);t&&!Wt&&$(),Wt=t}).observe(element);})();
