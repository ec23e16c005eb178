"use strict";(()=>{function m(e,t,n){let o=document.createElement(e);return t&&(o.className=t),n!==void 0&&(o.textContent=n),o}function U(e,t){e.textContent!==t&&(e.textContent=t)}function M(e){return element.querySelector(e)}function ae(e){return getComputedStyle(element).getPropertyValue(
e).trim()}function N(e){return e.toLocaleString("en-US")}function Je(e){return e>=100?Math.round(e)+" s":e.toFixed(e>=10?1:2)+" s"}function $e(e){return e>=4*2**
30?{unit:"GiB",scale:1/2**30}:e>=2*2**20?{unit:"MiB",scale:1/2**20}:{unit:"KiB",scale:1/1024}}var Ce=(e,t)=>{let n=!1,o=!1,r=()=>{n=!0},s=()=>{n&&(n=!1,setTimeout(()=>{o&&!n&&(o=!1,t())}))};e.addEventListener("pointerdown",a=>{a.button===0&&r()}),e.addEventListener(
"keydown",a=>{a.key===" "&&r()});for(let a of["pointerup","pointercancel","keyup","blur"])window.addEventListener(a,s);return()=>{n?o=!0:t()}};var V=["q","of","axis","machine","since","until"];function Qe(e){let t=new URLSearchParams(e);return{...Object.fromEntries(V.map(o=>[o,t.get(o)||""])),at:t.get(
"at")||"1",pins:(t.get("pins")||"").split(",").filter(Boolean),beside:t.get("beside")==="1"}}function sn(e){return{...e,at:e.at==="1"?"":e.at,pins:e.pins.join("\
,"),beside:e.beside?"1":""}}var E=Qe(location.search);function Ze(){E=Qe(location.search)}function I(e,t){E={...E,...e},window.tokendynoAddress&&window.tokendynoAddress.
keep("history",sn(E),t),$()}function et(e,t){return e.id+"."+t.name}function Y(e){let t=new Date(1e3*e),n=o=>String(o).padStart(2,"0");return!e||isNaN(Number(t))?
"unknown":[t.getFullYear(),n(t.getMonth()+1),n(t.getDate())].join("-")+" "+n(t.getHours())+":"+n(t.getMinutes())}async function qe(e){try{return JSON.parse(await e)}catch(t){
throw new Error("The server does not answer. Nothing was changed: try again.",{cause:t})}}async function J(e){let t=await qe(server.ask(e));if(t.error)throw new Error(
t.error);return t}function q(e){U(M(".td-failure"),e?e.message:"")}var an=80,Q={};function ie(e,t,n){let o=m("label","td-field td-field-"+e);o.append(m("span","",t),n),n.name=e,Q[e]=n,M(".td-search").append(o)}function xe(e,t){
let n=m("input");return n.type=e,n.maxLength=200,t&&(n.placeholder=t),n}function ln(){let e=m("select");e.append(new Option("any",""));for(let t of settings.axes){
let n=m("optgroup");n.label=t.title;let o=t.choices.map(([r,s])=>new Option(t.title+": "+s,t.name+"="+r));n.append(new Option(t.title+" was set",t.name),...o),e.
append(n)}return e}ie("q","Search",xe("search","words of model, choices, prompt, verdict, name, note"));ie("of","Model",xe("search","part of its name"));ie("axi\
s","Axis",ln());ie("machine","Machine",xe("search","such as H200"));ie("since","From",xe("date"));ie("until","To",xe("date"));var Pe=m("button","td-clear","Clea\
r");Pe.type="button";M(".td-search").append(Pe);var tt=0;for(let[e,t]of Object.entries(Q)){let n=t.type==="search"?"input":"change";t.addEventListener(n,()=>{clearTimeout(
tt);let o=t.type==="search";tt=setTimeout(()=>I({[e]:t.value,at:"1",beside:!1},!o),o?an:0)})}M(".td-search").addEventListener("submit",e=>e.preventDefault());Pe.
addEventListener("click",()=>{I({...Object.fromEntries(V.map(e=>[e,""])),at:"1"},!0),Q.q.focus()});function nt(){for(let e of V)Q[e].value!==E[e]&&(Q[e].value=E[e],
e==="axis"&&Q[e].value!==E[e]&&(Q[e].append(new Option(E[e])),Q[e].value=E[e]));Pe.disabled=V.every(e=>!E[e])}function ye(e){let t=document.activeElement;return t instanceof HTMLElement&&e.contains(t)?t:null}var cn={File:"dyno",Report:"html",CSV:"csv",JSON:"json"},un={File:"The whole run as one file, which tokendyno reads again",Report:"One HTML file that opens offl\
ine",CSV:"Every token and memory sample",JSON:"Figures, ledger and series"};function ot(e){let t=m("td","td-save-as");if(e.status==="running")return t;for(let[n,
o]of Object.entries(cn)){if(e.kind!=="run"&&(o==="html"||o==="csv"))continue;let r=m("a","",n);r.href="files/"+encodeURIComponent(e.id)+"."+o,r.download="",r.title=
un[n],r.setAttribute("aria-label",n+" of "+te(e)+", "+Y(e.created)),t.append(r," ")}return t}async function dn(e){let t,n;try{t=await fetch("import",{method:"PO\
ST",headers:{"content-type":"application/octet-stream"},body:e}),n=await t.json()}catch(o){throw new Error("The server does not answer. Nothing was taken in: tr\
y again.",{cause:o})}if(!t.ok)throw new Error(n.detail);return n.run}var Ae=M(".td-import-file");M(".td-import").addEventListener("click",()=>Ae.click());Ae.addEventListener(
"change",async()=>{let[e]=Ae.files;if(e){try{let t=await dn(e);I({...Object.fromEntries(V.map(n=>[n,""])),q:t,at:"1"},!0)}catch(t){q(t)}Ae.value=""}});function rt(e){M(".td-edit")?.remove();let t=m("tr","td-edit"),n=m("td"),o=m("form");t.dataset.of=e.id;let r=m("input"),s=m("textarea");r.value=e.name,r.maxLength=
80,s.value=e.note,s.maxLength=2e3,s.rows=2;for(let[c,l]of[["Name",r],["Note",s]]){let g=m("label","");g.append(m("span","",c),l),o.append(g)}let a=m("button","t\
d-save","Save");a.type="submit";let i=()=>{t.remove(),le(e.id)?.querySelector(".td-edit-run")?.focus()};o.append(a,W("td-cancel","Cancel","",i)),o.addEventListener(
"keydown",c=>{c.key==="Escape"&&i()}),o.addEventListener("submit",async c=>{c.preventDefault();try{r.value!==e.name&&await J({ask:"change",what:"name",run:e.id,
text:r.value}),s.value!==e.note&&await J({ask:"change",what:"note",run:e.id,text:s.value})}catch(l){q(l);return}i(),$()}),n.colSpan=Ue.length,n.append(o),t.append(
n),le(e.id).after(t),r.select()}async function st(e){try{await J({ask:"change",what:e.shared?"unshare":"share",run:e.id})}catch(t){q(t);return}$()}async function at(e){
try{await J({ask:"change",what:"delete",run:e.id})}catch(o){q(o);return}let t=m("p","","Deleted: "+te(e)+", "+Y(e.created)+". "),n=W("td-undelete","Undo","Undo:\
 restore "+te(e)+", "+Y(e.created),()=>fn(e,t));t.append(n),M(".td-undo").append(t),I({pins:E.pins.filter(o=>!o.startsWith(e.id+"."))},!1),n.focus()}async function fn(e,t){
try{await J({ask:"change",what:"undelete",run:e.id})}catch(n){q(n);return}t.remove(),await $(),le(e.id)?.querySelector("a")?.focus()}function lt(e){let t=E.pins.includes(e);if(!t&&E.pins.length>=settings.most){q(new Error(settings.most+" arms are pinned, which is as many as can stand side by \
side. Unpin one first."));return}I({pins:t?E.pins.filter(n=>n!==e):[...E.pins,e]},!1)}function it(e){let t=e.indexOf(".");return ke.get(e)||e.slice(0,Math.min(8,
t))+" "+e.slice(t+1)}var ce=M(".td-tray"),we=Ce(ce,()=>{let{pins:e}=E,t=ye(ce)?.dataset.press;ce.hidden=!e.length;let n=e.length>=settings.fewest,o=e.map((i,c)=>{
let l=m("span","td-pinned arm-"+(c+1)),g=W("td-unpin","×","Unpin "+it(i),()=>{let f=E.pins.filter(y=>y!==i);I({pins:f,beside:E.beside&&f.length>=settings.fewest},
E.beside)});return g.dataset.press=i,l.append(m("b","td-arm",String(c+1)),m("span","",it(i)),g),l}),r=W("td-compare","Side by side","",()=>I({beside:!0},!0));r.
disabled=!n||E.beside,r.dataset.press="view";let s=W("td-unpin-all","Unpin all","",()=>I({pins:[],beside:!1},E.beside));if(s.dataset.press="none",ce.replaceChildren(
...o,r,s,m("span","td-hint",n?"":"Pin "+settings.fewest+" to "+settings.most+" arms, of any runs.")),!t)return;([...ce.querySelectorAll("button:enabled")].find(
i=>i.dataset.press===t)||ce.querySelector(".td-unpin")||Q.q).focus()});var ct={failed:"Failed",cancelled:"Stopped",interrupted:"Interrupted",running:"Under way"},pn={batch:"many requests",quality:"quality"},Ue=["When","Run","Arms: \
press to pin","Verdict","Save as","Change"],ke=new Map;function W(e,t,n,o){let r=m("button",e,t);return r.type="button",n&&r.setAttribute("aria-label",n),r.addEventListener(
"click",o),r}function ut(e){return[e.label||e.model,e.work].filter(Boolean).join(", ")}function te(e){return e.name||ut(e)}function mn(e){let t=m("th","td-name"),
n=m("a","",te(e));t.scope="row",n.href="?run="+encodeURIComponent(e.id);let o=[e.name?ut(e):"",e.machine,pn[e.kind]||"",e.origin,e.shared&&e.mine?"shared with t\
he team":"",e.owner?"of "+e.owner:""];return t.append(n,m("small","",o.filter(Boolean).join(" · "))),t}function hn(e){let t=m("td","td-arms-of");for(let n of e.
arms){let o=et(e,n),r=E.pins.includes(o);ke.set(o,te(e)+" "+n.name+": "+n.text);let s=W("td-pin","",n.name+" "+n.text+": pin, of "+te(e)+", "+Y(e.created),()=>lt(
o));s.setAttribute("aria-pressed",String(r)),s.dataset.pin=o,s.append(m("b","",n.name),document.createTextNode(" "+n.text)),t.append(s)}return t}function gn(e){
let t=m("td","td-line-of");return ct[e.status]&&t.append(m("b","td-ended "+e.status,ct[e.status]),document.createTextNode(" ")),t.append(document.createTextNode(
e.line===null&&e.status!=="running"?"…":e.line||"")),e.note&&t.append(m("small","td-note-of",e.note)),t}function xn(e,t){let n=m("td","td-change");if(!e.mine)
return n;let o=" "+te(e)+", "+Y(e.created);n.append(W("td-edit-run","Name, note","Name, note: of"+o,()=>rt(e))),t&&n.append(W("td-share",e.shared?"Unshare":"Sha\
re",(e.shared?"Unshare:":"Share with the team:")+o,()=>st(e)));let r=W("td-delete","Delete","Delete"+o,()=>at(e));return r.disabled=e.status==="running",n.append(
r),n}function le(e){return[...M(".td-runs").querySelectorAll("tr")].find(t=>t.dataset.run===e)}function dt(e,t){let n=M(".td-runs"),o=ye(n),r=m("table"),s=n.querySelector(
".td-edit"),a=o?.closest("tr")?[o.closest("tr").dataset.run,o.dataset.pin||o.className]:null,i=m("tr");i.append(...Ue.map(l=>{let g=m("th","",l);return g.scope=
"col",g}));let c=m("tbody");for(let l of e.rows){let g=m("tr"),f=m("td","td-when",Y(l.created));g.dataset.run=l.id,g.append(f,mn(l),hn(l),gn(l),ot(l),xn(l,t)),c.
append(g)}if(r.append(m("thead"),c),r.tHead.append(i),n.replaceChildren(r),n.hidden=!e.rows.length,s)le(s.dataset.of)?.after(s),o&&s.contains(o)&&o.focus();else if(a){
let l=le(a[0]);l&&[...l.querySelectorAll("button, a")].find(g=>(g.dataset.pin||g.className)===a[1])?.focus()}}function ft(e){let t=e.page*e.per_page,n=t+e.rows.
length,o=V.some(a=>E[a]),r=e.total===1?"1 run":N(e.total)+" runs",s=e.rows.length===e.total?r:"Runs "+N(t+1)+" to "+N(n)+" of "+N(e.total);o&&e.rows.length&&(s+=
", of "+N(e.kept)+" altogether"),U(M(".td-count"),e.rows.length?s:"")}function pt(e){let{found:t,kept:n}=e,o=M(".td-empty-run"),r="";n?!t.kept&&e.trouble?r="No \
kept run can be shown now.":t.kept?t.total?t.rows.length||(r="There is no page "+N(t.page+1)+": "+N(t.total)+" runs are on "+N(Math.ceil(t.total/t.per_page))+" \
pages."):r="None of "+N(t.kept)+" runs matches. Leave a filter out, or press Clear.":r=(e.notes&&e.notes+" ")+"No run is kept yet. Go to Compare and press Run: \
each run is kept, and found again here. Runs of the command line are kept here too.":r="Runs are kept in memory only here, so there is no history: start the app\
 with --history FILE.",U(o,r)}function mt(e){let t=M(".td-pages"),n=Math.ceil(e.total/e.per_page),o=e.page+1;t.hidden=n<2&&o===1;let r=(a,i)=>{let c=W("",a,"",()=>{
I({at:String(i)},!0),M(".td-runs").scrollIntoView({block:"nearest"})});return c.disabled=i<1||i>n||i===o,c},s=ye(t)?.textContent;t.replaceChildren(r("First",1),
r("Newer",Math.min(o-1,n)),m("span","","Page "+N(o)+" of "+N(n)),r("Older",o+1),r("Last",n)),s&&[...t.querySelectorAll("button")].find(a=>a.textContent===s&&!a.
disabled)?.focus()}function be(){return window.Plotly?Promise.resolve():window.tokendynoPlotly??=new Promise(e=>{let t=()=>{let n=document.createElement("script");n.src=settings.plotly,
n.addEventListener("load",()=>e()),n.addEventListener("error",()=>{n.remove(),setTimeout(t,1e3)}),document.head.append(n)};t()})}var yn=260,wn=e=>t=>getComputedStyle(e).getPropertyValue(t).trim(),ht=e=>e.replace(/[<>&]/g," ");async function gt(e,t,n){if(await new Promise(g=>setTimeout(g)),
await be(),!e.isConnected)return;let o=wn(e),r=o("--body-text-color-subdued"),s=o("--border-color-primary"),{xaxis:a,yaxis:i,...c}=n(o),l={gridcolor:s,linecolor:s,
zeroline:!1,fixedrange:!0,automargin:!0,title:{font:{size:11}}};Plotly.react(e,t(o),{height:yn,margin:{t:8,b:38,l:52,r:12},paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"\
rgba(0,0,0,0)",font:{color:r,size:11,family:o("--font")||"sans-serif"},showlegend:!1,dragmode:!1,hoverlabel:{font:{size:12}},xaxis:{...l,...a},yaxis:{...l,...i},
...c},{displayModeBar:!1,showTips:!1}),new ResizeObserver(()=>{e.clientWidth&&Plotly.Plots.resize(e)}).observe(e)}function je(e){return[...new Set(e.points.map(n=>n.alike))].flatMap(n=>e.points.filter(o=>o.front&&o.alike===n).sort((o,r)=>o.latency_s-r.latency_s))}function kn(e){
let t=je(e);return n=>n.mark||(n.front?String(t.indexOf(n)+1):"")}function bn(e,t){let n=Math.max(...t.points.map(d=>d.memory_bytes))>4294967296,o=n?2**-30:2**-20,
r=t.quality?Math.max(...t.points.map(d=>d.quality)):0,s=d=>d.latency_s*1e3,a=d=>d.memory_bytes*o,i=d=>9+(r?13*Math.sqrt((d.quality||0)/r):0),c=je(t),l=c.flatMap(
(d,x)=>x&&c[x-1].alike!==d.alike?[null,d]:[d]),g=t.points.filter(d=>!d.front),f=kn(t),y=(d,x,h)=>({x:d.map(s),y:d.map(a),mode:"markers+text",cliponaxis:!1,marker:{
size:d.map(i),color:h?x:"rgba(0,0,0,0)",line:{color:x,width:1.5}},text:d.map(f),textposition:"top center",textfont:{size:11,color:x},customdata:d.map(u=>ht(u.label+
": "+u.text)),hovertemplate:"%{customdata}<extra></extra>"});return gt(e,d=>[{x:l.map(x=>x&&s(x)),y:l.map(x=>x&&a(x)),mode:"lines",line:{color:d("--body-text-co\
lor-subdued"),width:1,dash:"dot"},hoverinfo:"skip"},y(g,d("--body-text-color-subdued"),!1),y(c,d("--body-text-color"),!0)],()=>({xaxis:{title:{text:"Time per to\
ken (ms)",font:{size:11}}},yaxis:{title:{text:"Peak memory ("+(n?"GiB":"MiB")+")",font:{size:11}}},margin:{t:22,b:38,l:52,r:24}}))}function xt(e,t){let n=(c,l,g)=>{
let f=document.createElement(l);return f.textContent=g||"",c.append(f),f},o=n(e,"figure"),r=je(t);o.className="td-pareto",n(o,"figcaption",t.quality?"Time, memo\
ry and quality":"Time and memory");let s=n(o,"div");s.className="td-plotted",s.setAttribute("aria-hidden","true");let a=new Set(t.points.map(c=>c.alike)).size>1?
" of the same sizes":"";n(o,"p","What no other"+a+" beats in "+(t.quality?"time, memory and "+t.quality+" together; a larger point has more of the last:":"time \
and memory together:"));let i=n(o,"ol");for(let c of r){let l=n(i,"li",c.label+": "+c.text);/^\d+$/.test(c.mark)&&(l.value=Number(c.mark))}bn(s,t)}var yt=e=>{new MutationObserver(()=>e()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};var wt=["t","lat","kvs","kvf"];function kt(){return{t:[],lat:[],kvs:[],kvf:[],st:[],sm:[],text:"",chars:0}}function bt(e){return[e.t.length,e.st.length,e.chars]}
function vt(e){return Object.fromEntries([...wt,"st","sm"].map(t=>[t,e[t].length]))}function Mt(e,t){let n={tokens:0,samples:0,added:""},o=e.t.length;if(t.first<=
o&&t.n>o){for(let s of wt){let a=e[s],i=t[s];for(let c=o-t.first;c<i.length;c++)a.push(i[c])}n.tokens=t.n-o}let r=e.st.length;if(t.sfirst<=r&&t.sn>r){for(let s=r-
t.sfirst;s<t.st.length;s++)e.st.push(t.st[s]),e.sm.push(t.sm[s]);n.samples=t.sn-r}if(t.cfirst<=e.chars&&t.cn>e.chars){let s=e.chars-t.cfirst;n.added=s?Array.from(
t.text).slice(s).join(""):t.text,e.text+=n.added,e.chars=t.cn}return n}function D(e,t){let n=0,o=e.length;for(;n<o;){let r=n+o>>1;e[r]<t?n=r+1:o=r}return n}function _t(e,t,n,o){let r=Math.max(0,n-t);if(r<=o)return Array.from({length:r},
(a,i)=>t+i);let s=2;for(;s*(o/2-2)<r;)s*=2;for(;;){let a=vn(e,t,n,s);if(a.length<=o)return a;s*=2}}function vn(e,t,n,o){let r=[t];for(let s=t-t%o;s<n;s+=o){let a=Math.
max(s,t),i=Math.min(s+o,n),c=[];for(let l of e){let g=Math.min(i,l.length);if(a>=g)continue;let f=a,y=a;for(let d=a+1;d<g;d++)l[d]<l[f]?f=d:l[d]>l[y]&&(y=d);c.push(
f,y)}c.sort((l,g)=>l-g);for(let l of c)l>r[r.length-1]&&r.push(l)}return r[r.length-1]!==n-1&&r.push(n-1),r}function ne(e,t,n){return e.at==="sample"?t==="second"?o=>n.st[o]:o=>de(n.t,n.st[o]):t==="second"?o=>n.t[o]:o=>o}function Ne(e,t,n,[o,r]){if(e.at==="sample"){let[
s,a]=t==="second"?[o,r]:[ue(n.t,o),ue(n.t,r)];return[D(n.st,s),D(n.st,a)]}return t==="second"?[D(n.t,o),D(n.t,r)]:[Math.floor(o),Math.ceil(r)]}function ze([e,t],n,o){
let r=o.filter(a=>a.t.length);if(!r.length)return null;let s=r.map(({t:a})=>n==="second"?[ue(a,e),ue(a,t)]:[de(a,e),de(a,t)]);return[Math.min(...s.map(a=>a[0])),
Math.max(...s.map(a=>a[1]))]}function Tt(e,{t},n){return!t.length||n>t[t.length-1]?null:e==="second"?n:n<t[0]?null:D(t,n)}function ue(e,t){if(!e.length)return 0;
let n=e.length-1,o=Math.min(n,Math.max(0,t)),r=Math.floor(o);return r===n?e[n]:e[r]+(o-r)*(e[r+1]-e[r])}function de(e,t){let n=D(e,t);return n===0?0:n>=e.length?
e.length-1:n-1+(t-e[n-1])/(e[n]-e[n-1])}var Mn=.98,_n=2,Tn=1.5,Sn=20;function St(e,t){let n=Float64Array.from(e.flatMap(s=>s.slice(t))).sort();if(n.length<Sn)return null;
let o=n[Math.floor(Mn*(n.length-1))];return n[n.length-1]>_n*o?Tn*o:null}var En={compile:["diamond","◆"],recompile:["diamond","◆"],graph_skip:["x","✕"],window:["triangle-down","▼"],cache:["square","■"],gc:["circle","●"],throttle:[
"star","★"],foreign:["cross","✚"]};function Et(e,t,{head:n,series:o,hidden:r,axis:s,ink:a}){let i=j(e)[0],c=X(i,n),l=[];return n.arms.forEach((g,f)=>{let y=o[f][i.column],d=new Map(g.marks.filter(
({token:u})=>u>=c&&u<y.length).reverse().map(u=>[u.token,u.kind]));if(!d.size)return;let x=[...d.keys()].sort((u,p)=>u-p),h=x.map(u=>En[d.get(u)][0]);l.push({...t,
mode:"markers",x:x.map(ne(i,s,o[f])),y:x.map(u=>y[u]*i.scale),marker:{symbol:h.map(u=>u+(f%2?"-open":"")),size:9,color:a,line:{width:1.2,color:a}},hoverinfo:"sk\
ip",showlegend:!1,visible:!r.has(g.name),meta:{chart:e.key,annotations:g.name}})}),l}var Ot=[{color:"#4269d0",dash:"solid"},{color:"#ff725c",dash:"5px,2.5px"},{color:"#3ca951",dash:"10px,3px"},{color:"#a463f2",dash:"9px,3px,2px,3px"},{color:"#9c\
6b4e",dash:"4px,2px,1px,2px,1px,2px"}];function Me(e,t){return Ot[(e.line??t)%Ot.length]}var Lt="1px,3px",On=400;function Ct(e,t){return e.flatMap((n,o)=>{let r={
xaxis:"x"+R(o),yaxis:"y"+R(o),type:"scatter",mode:"lines"};if(!t.head)return[{...r,x:[0,1],y:[0,1],line:{width:0},hoverinfo:"skip",showlegend:!1}];let s=t.part?
{...t,series:t.part}:t,a=_e(n,t),i=Cn(n,o,r,a,s);return n.annotations&&i.push(...Et(n,r,s)),t.tops&&t.tops[o]!==null&&i.push(...Nn(n,o,r,s)),i.push(In(n,o,r,t)),
i.concat(qn(n,o,r,a,t))})}function R(e){return e?e+1:""}function re(e){return e.replace(/[<>&]/g,"")}function X(e,t){return t.unit==="forward"?0:e.first}function j(e){
return e.lines.filter(t=>!t.curve)}function Fe(e,t,{head:n,series:o,axis:r,zoom:s}){let a=X(e[0],n),i=t.flatMap(g=>e.map(f=>o[g][f.column])),c=a,l=Math.max(0,...i.
map(g=>g.length));if(s){let[g,f]=Ne(e[0],r,o[t[0]],s);c=Math.max(c,g-1),l=Math.min(l,f+2)}return _t(i,c,l,On)}function De(e,t,{head:n,series:o}){return e.curve?
n.arms[t][e.curve]:o[t]}function Pt(e,t){let n=0;for(let o of e.lines)t.series.forEach((r,s)=>{let a=De(o,s,t);if(a)for(let i of a[o.column])i>n&&(n=i)});return n}
function Ln(e,{series:t}){let n=1/0;for(let o of j(e))for(let r of t)for(let s of r[o.column])s<n&&(n=s);return n<1/0?n:0}function At(e,t,n){return e.unit!=="by\
tes"?{unit:e.unit,scale:1}:n||$e(Pt(e,t))}function _e(e,t){let n=o=>t.series.some((r,s)=>{let a=De(o,s,t),i=a&&a[o.column];return i&&i.length&&i[i.length-1]>0});
return[...new Set(e.lines.filter(o=>o.kind&&n(o)).map(o=>o.kind))]}function Cn(e,t,n,o,r){let{head:s,series:a,hidden:i,axis:c,ended:l}=r,{scale:g}=r.units[t],f=[],
y=j(e),d=a.map((p,b)=>b),h=y[0].at==="token"&&c==="token"?d.map(()=>Fe(y,d,r)):d.map(p=>Fe(y,[p],r)),u=(p,b,k,w)=>{let v=s.arms[b].name,_=Me(s.arms[b],b);f.push(
{...n,x:k,y:w,name:re([v,p.kind,p.label].filter(Boolean).join(" ")),showlegend:!1,hoverinfo:"skip",visible:![v,p.kind,p.label].some(S=>S&&i.has(S)),meta:{chart:e.
key,arm:v,kind:p.kind,curve:p.curve},line:{width:p.width,color:_.color,dash:p.curve?Lt:_.dash},opacity:p.curve?.9:1})};for(let p of e.lines)for(let b of d){if(p.
kind&&!o.includes(p.kind))continue;let k=De(p,b,r),w=p.scale*g;if(!k)continue;let v=k[p.column];if(p.curve&&p.at==="sample"){let S=c==="second"?k.x:k.x.map(C=>C===
null?null:de(a[b].t,C));u(p,b,S,v.map(C=>C===null?null:C*w));continue}if(p.curve){let S=Be(p,s.arms[b]),{t:C}=a[b];if(c==="token"){let z=l?Math.max(...a.map(H=>H.
t.length))-1+S:1/0,G=An(k.x,z);u(p,b,G.map(H=>H-S),G.map(H=>ve(k.x,v,H)*w));continue}let B=Fe(Pn,[b],r).filter(z=>z+S>=k.x[0]);u(p,b,B.map(z=>C[z]),B.map(z=>ve(
k.x,v,z+S)*w));continue}let _=h[b].filter(S=>S<v.length);u(p,b,_.map(ne(p,c,k)),_.map(S=>v[S]*w))}return f}var Pn=[{at:"token",column:"lat",first:0,scale:1,kind:"",
width:1,curve:"",label:""}];function Be(e,t){return e.at==="length"?t.prompt_tokens:0}function An(e,t){let n=e.filter(o=>o<=t);return n.length&&n.length<e.length&&
n[n.length-1]<t?[...n,t]:n}function ve(e,t,n){let o=D(e,n);return o===0||o>=e.length?t[o?e.length-1:0]:t[o-1]+(t[o]-t[o-1])*(n-e[o-1])/(e[o]-e[o-1])}function Nn(e,t,n,o){
let{head:r,series:s,hidden:a,axis:i,tops:c}=o,{unit:l,scale:g}=o.units[t],[f]=j(e);return r.arms.map((y,d)=>{let x=s[d][f.column],h=f.scale*g,u=[];for(let p=X(f,
r);p<x.length;p++)x[p]*h>c[t]&&u.push(p);return{...n,mode:"markers",x:u.map(ne(f,i,s[d])),y:u.map(()=>.985*c[t]),showlegend:!1,visible:!a.has(y.name),cliponaxis:!1,
marker:{symbol:"triangle-up"+(d%2?"-open":""),size:7,color:Me(r.arms[d],d).color},hoverinfo:"skip",text:u.map(p=>(x[p]*h).toPrecision(3)+" "+l),meta:{chart:e.key,
outliers:y.name}}})}function Nt(e,t,{head:n,series:o,ended:r,axis:s,zoom:a,units:i},c){let l=e.lines.find(k=>k.curve==="floor"),g=n.arms.map((k,w)=>[k,o[w]]),f=l?
g.filter(([{floor:k}])=>k&&k[l.column].length):[];if(!f.length)return[];let{unit:y,scale:d}=i[t],x=f.map(([{floor:k},{t:w}])=>{let v=a?a[1]:r&&s==="token"?Math.
max(...o.map(S=>S.t.length))-1:1/0,_=s==="second"?de(w,v):v;return ve(k.x,k[l.column],_)*l.scale*d}),h=x.map(k=>Number(k.toPrecision(3))),p=Math.max(...x)<1.1*Math.
min(...x)?h[0]:f.map(([k],w)=>re(k.name)+" "+h[w]).join(", "),b=f.filter(([{floor:k}])=>k.exchanges).map(([{name:k,floor:w}])=>", exchanges of "+re(k)+" "+w.exchanges).
join("");return[{text:"roofline bound "+p+" "+y+b,showarrow:!1,xref:"x"+R(t)+" domain",yref:"y"+R(t),x:1,y:Math.max(...x),xanchor:"right",yanchor:"bottom",font:{
size:10,color:c}}]}var Rn=.25;function In(e,t,n,o){let{head:r,series:s,ended:a,axis:i}=o,{scale:c}=o.units[t],l=[0,Math.max(1,a?Math.max(...s.map(h=>h.t.length)):
r.max_new_tokens)];if(i==="second"){let h=Math.max(0,...s.flatMap(({t:p,st:b})=>[p,b].filter(k=>k.length).map(k=>k[k.length-1]))),u=10**Math.floor(Math.log10(Math.
max(1,h)));l=[0,a?h:Math.ceil((h+u/10)/u)*u]}let g=e.unit==="bytes"?Pt(e,o)*c:0,f=e.min_span*g,y=e.from_zero?0:Ln(e,o)*c,d=a?g:g+Rn*(g-y),x=[y-f/4,Math.max(d,y+
3*f/4)];return{...n,x:l,y:x,line:{width:0},hoverinfo:"skip",showlegend:!1,meta:{chart:e.key,extent:!0}}}function qn(e,t,n,o,{head:r,hidden:s,neutral:a}){let i=(f,y,d)=>({
...n,x:[null],y:[null],name:re(f),line:y,legend:d,showlegend:!0,hoverinfo:"skip",visible:s.has(f)?"legendonly":!0,meta:{legend:f}}),c="legend"+R(t),l=t?[]:r.arms.
map((f,y)=>i(f.name,{width:2,...Me(r.arms[y],y)},c));for(let f of o){let{width:y}=j(e).find(d=>d.kind===f);l.push(i(f,{width:y,color:a},c))}let g=f=>f.curve&&(!f.
kind||o.includes(f.kind))&&r.arms.some(y=>y[f.curve]);for(let f of new Set(e.lines.filter(g).map(y=>y.label)))l.push(i(f,{width:1.2,color:a,dash:Lt},c));return l}function Un(e,t,n,o){let{t:r,st:s}=n;if(e.at==="sample"){let i=t.second??(t.token<r.length?ue(r,t.token):1/0),c=D(s,i);return!s.length||i>Math.max(s[s.length-1],
r.length?r[r.length-1]:0)?null:c>0&&(c>=s.length||i-s[c-1]<s[c]-i)?c-1:c}let a=t.token??D(r,t.second);return a>=o&&a<r.length?a:null}function Re(e){return e.toLocaleString(
"en-US",{maximumSignificantDigits:4})}function jn({x:e},t,n){let o=[],r=null;return e.forEach((s,a)=>{s===null?(o.push(t[r]),r=null):(r===null||Math.abs(s-n)<Math.
abs(e[r]-n))&&(r=a)}),o}function Rt(e,t,n,o){let{head:r,series:s,hidden:a}=o,{unit:i,scale:c}=o.units[t],l=_e(e,o),g=x=>!x.kind||l.includes(x.kind),[f]=e.lines.
filter(x=>!x.curve),y=j(e).filter(g),d=e.lines.filter(x=>x.curve&&x.at!=="sample"&&g(x));return r.arms.flatMap((x,h)=>{let u=Un(f,n,s[h],X(f,r));if(u===null||a.
has(x.name)||!y.length)return[];let p=y.map(w=>s[h][w.column][u]*w.scale*c),b=[p.map((w,v)=>Re(w)+(y.length>1?" "+y[v].kind:"")).join(" + ")+" "+i],k=d.filter(w=>x[w.
curve]);if(k.length){let w=k.reduce((_,S)=>_+ve(x[S.curve].x,x[S.curve][S.column],u+Be(S,x))*S.scale*c,0),v=Math.abs(w-p.reduce((_,S)=>_+S,0))<5e-4*w;b.push(k[0].
curve==="floor"?"roofline bound "+Re(w):v?"as predicted":"predicted "+Re(w))}for(let w of e.lines.filter(v=>v.curve&&v.at==="sample"&&x[v.curve])){let v=jn(x[w.
curve],x[w.curve][w.column],s[h].st[u]);b.push(w.label+" "+v.map(_=>Re(_*w.scale*c)).join(", "))}return f.at==="token"&&n.token===void 0&&b.push(Ie(r)+" "+N(u)),
e.lines.some(w=>w.at==="length")&&b.push(N(x.prompt_tokens+u)+" tokens cached"),[{arm:x.name,text:b.join(", ")}]})}function Ie(e){return e.unit==="forward"?"pas\
s":"token"}function It(e,t,n,o,{head:r,series:s,hidden:a,axis:i,units:c,tops:l}){let[g]=j(e),f=X(g,r),y=l[t]===null?1/0:l[t]/g.scale/c[t].scale,d=null,x=o;return e.
annotations&&r.arms.forEach((h,u)=>{if(a.has(h.name))return;let p=s[u][g.column],b=new Set(h.marks.map(_=>_.token)),k=ne(g,i,s[u]),[w,v]=Ne(g,i,s[u],[n-o,n+o]);
for(let _=Math.max(f,w);_<=Math.min(v,p.length-1);_++){let S=Math.abs(k(_)-n);S<=x&&(b.has(_)||p[_]>y)&&(x=S,d=k(_))}}),i==="second"?{second:Math.max(0,d??n)}:{
token:d??Math.max(0,Math.round(n))}}function qt(e,{head:t,series:n,hidden:o}){return t.arms.flatMap((r,s)=>{let a=e.token??D(n[s].t,e.second);return o.has(r.name)?
[]:r.marks.filter(i=>i.token===a&&a<n[s].t.length).map(i=>r.name+" "+Ie(t)+" "+N(a)+": "+i.text)})}var zn=5;function Ut(e,t,n,o){let r=null,s=null,a=null,i=h=>[e._fullLayout["xaxis"+R(h)],e._fullLayout["yaxis"+R(h)]];function c(h){let u=e.getBoundingClientRect(),
p=h.clientX-u.left,b=h.clientY-u.top;for(let k=0;k<o.length;k++){let[w,v]=i(k);if(p<w._offset||p>w._offset+w._length||b<v._offset||b>v._offset+v._length)continue;
let _=p-w._offset;return{i:k,x:w.p2l(_),reach:Math.abs(w.p2l(_+zn)-w.p2l(_))}}return null}function l(h){let u=a&&a.head&&e._fullLayout?c(h):null;r=u&&It(o[u.i],
u.i,u.x,u.reach,a),x()}function g(){r&&(r=null,x())}function f(h,u,p){let[b,k]=i(h);if(u===null||u<b.range[0]||u>b.range[1])return[];let w=m("i","td-moment "+p);
return Object.assign(w.style,{left:b._offset+b.l2p(u)+"px",top:k._offset+"px",height:k._length+"px"}),[w]}function y(h,u,p){let[b,k]=i(h),w=m("span","td-place",
p),v=Math.min(b._length,Math.max(0,b.l2p(u)));return Object.assign(w.style,{left:b._offset+v+"px",top:k._offset+k._length+1+"px",transform:"translateX(-"+100*v/
b._length+"%)"}),w}function d(h,u){let p=Rt(o[h],h,u,a),[b,k]=i(h);if(!p.length)return[];let w=m("div","td-readout");Object.assign(w.style,{left:b._offset-4+"px",
width:b._length+8+"px",bottom:"calc(100% - "+k._offset+"px)"}),a.titles[h]&&w.append(m("strong","",a.titles[h]));for(let{arm:v,text:_}of p){let S=m("span","arm-"+
v.toLowerCase());S.append(m("b","td-arm",v),document.createTextNode(_)),w.append(S)}return[w]}function x(){let h=r||(s===null?null:{second:s}),u=[],p=h&&a&&a.head&&
e._fullLayout&&e._fullLayout.xaxis;p&&o.forEach((k,w)=>{if(!a.series.some(_=>_.t.length||_.st.length))return;let v=r?r.token??r.second:a.axis==="second"?s:null;
r?u.push(...f(w,v,"")):a.series.forEach((_,S)=>u.push(...f(w,Tt(a.axis,_,s),"arm-"+a.head.arms[S].name.toLowerCase()))),v!==null&&u.push(y(w,v,a.axis==="second"?
Je(v):Ie(a.head)+" "+N(v))),u.push(...d(w,h))}),t.replaceChildren(...u);let b=p?qt(h,a):[];n.hidden=!b.length,n.replaceChildren(...b.map(k=>m("span","",k)))}return e.
addEventListener("pointermove",l),e.addEventListener("pointerdown",h=>h.pointerType==="touch"?l(h):g()),e.addEventListener("pointerleave",g),{take(h){a=h,(r||s!==
null)&&x()},pointAt(h){s=h,x()},clear(){r=null,s=null,a=null,x()}}}function jt(e,t,n){let o=null,r=[];function s(){o=null,r=[],t.replaceChildren()}function a(f,y){s(),f.head&&(o=f,r=n.map((d,x)=>c(d,x,y)),l())}function i(f){return o&&
(o={...o,series:f}),l()}function c(f,y,d){let x=e._fullLayout["xaxis"+R(y)],h=e._fullLayout["yaxis"+R(y)],u=window.devicePixelRatio,p=m("canvas",""),b=p.getContext(
"2d"),k=_e(f,o);p.width=Math.ceil(x._length*u),p.height=Math.ceil(h._length*u),Object.assign(p.style,{left:x._offset+"px",top:h._offset+"px",width:x._length+"px",
height:h._length+"px"}),b.scale(u,u),t.append(p);let w=j(f).filter(v=>!v.kind||k.includes(v.kind)).flatMap(v=>o.series.map((_,S)=>({line:v,a:S,next:Math.max(X(v,
o.head),d[S][v.column]-1),drawnPx:0,shown:![o.head.arms[S].name,v.kind].some(C=>C&&o.hidden.has(C))})));return{x,y:h,pen:b,lines:w,scale:o.units[y].scale}}function l(){
return o?r.map(g).some(Boolean):!1}function g({x:f,y,pen:d,lines:x,scale:h}){let u=!1;for(let p of x){let{line:b,a:k}=p,w=o.series[k][b.column],v=w.length;if(!p.
shown||v-p.next<2)continue;let _=ne(b,o.axis,o.series[k]),S=Me(o.head.arms[k],k),C=f.l2p(_(p.next)),B=y.l2p(w[p.next]*b.scale*h),z=p.drawnPx;d.beginPath(),d.moveTo(
C,B);for(let G=p.next+1;G<v;G++){let H=f.l2p(_(G)),K=y.l2p(w[G]*b.scale*h);d.lineTo(H,K),z+=Math.hypot(H-C,K-B),C=H,B=K,u=u||f.autorange&&C>f._length||y.autorange&&
(B<0||B>y._length)}d.strokeStyle=S.color,d.lineWidth=b.width,d.setLineDash(S.dash==="solid"?[]:S.dash.split(",").map(parseFloat)),d.lineDashOffset=p.drawnPx,d.stroke(),
p.next=v-1,p.drawnPx=z}return u}return{take:a,follow:i,draw:l,clear:s}}var Fn=760,Dn=250,Bn=420,Hn=40,Wn=()=>Math.round(Math.min(420,Math.max(200,.26*window.innerHeight))),Xn={responsive:!0,displaylogo:!1,showTips:!1,showSendToCloud:!1,
displayModeBar:!1};function zt(e,t,n,o,r){let s="",a=null,i=[],c=null,l=[],g=[],f=[],y=new Set,d=!1,x=0,h="token",u=null,p=0,b=!1,k=!1,w=!1,v=!1,_=!0,S=!1,C=0,B=0,
z=10,G=300,H=1e3,K=[],Xe=[];function Vt(T){T&&nn(),s=T,a=null,i=[],c=null,l=[],y=new Set,d=!1,_=!0,u=null,b=!1,o.clear(),r.clear()}function Yt(T){t.forEach((L,P)=>{
let O="xaxis"+R(P),A=T[O+".range"]||[T[O+".range[0]"],T[O+".range[1]"]];T[O+".autorange"]?u=null:a&&A[0]!==void 0&&(u=A.map(Number))}),me()}function me(){_=!0,se(
!0)}function Kt(T){T!==h&&(h=T,u=u&&ze(u,h,i),me())}function Jt(T,L){if(!a||b||T.unit!=="ms")return null;let[P]=j(T),O=St(i.map(A=>A[P.column]),X(P,a));return O===
null?null:O*P.scale*l[L].scale}function $t(T,L){if(!a||!c||T.unit!=="ms")return null;let[P]=j(T),O=X(P,a),A=i.reduce((oe,Se)=>Se[P.column].slice(O).reduce((Z,ee)=>Math.
max(Z,ee),oe),0);return A?1.05*A*P.scale*l[L].scale:null}function Qt(){let T={head:a,series:i,part:c,ended:d,hidden:y,axis:h,zoom:u,units:l,ink:ae("--body-text-\
color"),neutral:ae("--body-text-color-subdued")};l=t.map((O,A)=>a?At(O,T,u&&l[A]):null),g=t.map(Jt),n.outliers.hidden=!b&&g.every(O=>O===null),n.outliers.setAttribute(
"aria-pressed",String(b)),U(n.outliers,b?"Cut outliers off":"Show outliers in full"),n.whole.hidden=u===null;for(let O of n.axes.querySelectorAll("button"))O.setAttribute(
"aria-pressed",String(O.dataset.axis===h));U(n.axes.firstElementChild,a&&a.unit==="forward"?"Passes":"Tokens");let L=Ct(t,{...T,units:l,tops:g}),P=L.filter(O=>!O.
meta?.extent&&O.y.some(Number.isFinite)).map(O=>O.yaxis);return f=t.map((O,A)=>!c&&!P.includes("y"+R(A))),L}function Zt(){let T=element.clientWidth<Fn,L=t.length,
P=T?.13:.05,O=(1-P*(L-1))/L,A=element.clientWidth*(T?1:O)<Bn,oe=ae("--body-text-color"),Se=ae("--border-color-primary"),Z={uirevision:s+"/"+p,datarevision:++x,paper_bgcolor:"\
rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:oe,size:11,family:ae("--font")||"sans-serif"},height:T?Dn*L:Wn(),margin:{t:A?56:36,b:34,l:44,r:8,autoexpand:!1},
hovermode:!1,dragmode:"zoom",annotations:[]};return t.forEach((ee,F)=>{let Ee=F*(O+P),he=T?[0,1]:[Ee,Ee+O],ge=T?[1-Ee-O,1-Ee]:[0,1],Ve=ee.unit==="bytes"?l[F]&&l[F].
unit:ee.unit,Oe=a&&a.unit==="forward"&&ee.encoder||ee,Le=re(Oe.title||(a?a.memory_label:"memory")).slice(0,Hn),Ye=g[F]??$t(ee,F);Xe[F]=A?"":Le[0].toUpperCase()+
Le.slice(1);let Ke={gridcolor:Se,zeroline:!1,linecolor:Se,ticks:"",automargin:!1,showticklabels:!!a&&!Oe.note};Z["xaxis"+R(F)]={...Ke,domain:he,anchor:"y"+R(F),
uirevision:[s,p,h].join("/"),...u?{range:[...u],autorange:!1}:{},title:{text:h==="second"?"seconds":a&&a.unit==="forward"?"forward pass":"token",standoff:2},nticks:6},
Z["yaxis"+R(F)]={...Ke,domain:ge,anchor:"x"+R(F),rangemode:ee.from_zero?"tozero":"normal",nticks:6,tickformat:",~r",...Ye===null?{}:{range:[0,Ye],autorange:!1},
...f[F]?{showticklabels:!1}:{}},a&&Z.annotations.push(...Nt(ee,F,{head:a,series:i,ended:d,axis:h,zoom:u,units:l},oe)),Z.annotations.push({text:"<b>"+Le[0].toUpperCase()+
Le.slice(1)+"</b>"+(Ve?", "+Ve:""),showarrow:!1,xref:"paper",yref:"paper",x:he[0],y:ge[1],xanchor:"left",yanchor:"bottom",yshift:A?32:4,xshift:-4,font:{size:12}}),
Oe.note&&Z.annotations.push({text:re(Oe.note),showarrow:!1,xanchor:"center",xref:"paper",yref:"paper",x:(he[0]+he[1])/2,y:(ge[0]+ge[1])/2});let rn={orientation:"\
h",x:he[A?0:1],y:ge[1],xanchor:A?"left":"right",yanchor:"bottom",bgcolor:"rgba(0,0,0,0)",font:{size:11},itemwidth:30};Z["legend"+R(F)]=rn}),Z}async function se(T){
if(!w||!_||S||document.hidden||!T&&performance.now()<C||!element.offsetParent)return;_=!1;let L=performance.now(),P=c||i,O=P.map(vt),A=Qt(),oe={head:a,series:i,
hidden:y,axis:h,units:l,tops:g,titles:Xe};S=!0;try{await Plotly.react(e,A,Zt(),Xn)}finally{S=!1}on(),oe.series===i&&(o.take(oe),r.take({...oe,series:P},O)),requestAnimationFrame(
()=>setTimeout(()=>{K.push(performance.now()-L),K.length>5&&K.shift(),B=performance.now()+G,C=performance.now()+Math.max(G,Math.min(H,Math.min(...K)*z)),window.
tokendynoProbe&&window.tokendynoProbe.painted(K[K.length-1])},0)),Ge()}function en(){_=!0,r.draw()&&(C=Math.min(C,B)),Ge()}function Ge(){if(!window.tokendynoProbe||
S||!a)return;let T=i.map(L=>L.t.length);requestAnimationFrame(()=>setTimeout(()=>window.tokendynoProbe.shows(T),0))}function tn(T){let L=T.data[T.curveNumber].meta.
legend;return y.delete(L)||y.add(L),me(),!1}async function nn(){k||(k=!0,await be(),w=!0,setInterval(()=>{element.isConnected&&se(!1)},33),se(!0))}function on(){
if(!v){v=!0,e.on("plotly_relayout",Yt),e.on("plotly_legendclick",tn),e.on("plotly_legenddoubleclick",()=>!1),n.outliers.addEventListener("click",()=>{b=!b,me()});
for(let T of n.axes.querySelectorAll("button"))T.addEventListener("click",()=>Kt(T.dataset.axis));n.whole.addEventListener("click",()=>{u=null,p++,me()})}}return{
reset:Vt,take(T,L){a=T,i=L,_=!0},end(){d=!0,_=!0,se(!0)},async picture(T){return await be(),Plotly.downloadImage(e,{format:"png",filename:T,scale:2,width:e.clientWidth,
height:e.clientHeight})},get zoom(){return u&&(h==="token"?u:ze(u,"token",i))},grow:en,only(T){if(c===T)return;let L=c&&T&&T.every((P,O)=>P.t.length>=c[O].t.length);
c=T,_=!0,L&&r.follow(T)&&(C=Math.min(C,B)),se(!L)},touch(){_=!0,se(!1)},pace(T,L,P){z=T,G=L,H=P}}}var Gn=Ut(M(".td-plot"),M(".td-moments"),M(".td-noted"),settings.charts),Vn=jt(M(".td-plot"),M(".td-fresh"),settings.charts),Yn={outliers:M(".td-outliers"),axes:M(
".td-axis"),whole:M(".td-whole")},pe=zt(M(".td-plot"),settings.charts,Yn,Gn,Vn),fe=new Map,Kn=8;async function Jn(e){if(fe.has(e))return fe.get(e);let t=[],n=null,
o=-1;for(;;){let r=t.length?t.map(bt):[],s=await qe(server.pull({run:e,version:o,cur:r}));if(s.error)return null;s.head&&(n=s.head,o=s.version,t.length||(t=n.arms.
map(kt)));let a=0;if(s.lanes.forEach((i,c)=>{a+=Mt(t[c],i).tokens}),s.ended||!a){let i={head:n,series:t};return s.ended&&fe.set(e,i),fe.size>Kn&&fe.delete(fe.keys().
next().value),i}}}async function Ft(e,t){U(M(".td-drawn"),"");let n=await Promise.all(e.map(async({run:l,arm:g,label:f})=>{let y=await Jn(l),d=y&&y.head?y.head.
arms.findIndex(x=>x.name===g):-1;return d<0||!y.series[d].t.length?{label:f}:{label:f,head:y.head,arm:y.head.arms[d],series:y.series[d]}}));if(!t())return;let o=n.
filter(l=>l.head),r=o.length?o[0].head.unit:"token",s=o.filter(l=>l.head.unit===r),a=n.filter(l=>!s.includes(l)).map(l=>l.label);if(U(M(".td-drawn"),a.length?"N\
ot drawn: "+a.join(", ")+" (no "+(r==="forward"?"forward passes":"tokens of one prompt")+" were timed)":""),M(".td-stage").hidden=!s.length,!s.length)return;let i=new Set(
s.map(l=>l.head.memory_label)),c={unit:r,memory_label:i.size===1?[...i][0]:"memory",max_new_tokens:Math.max(...s.map(l=>l.head.max_new_tokens)),arms:s.map(l=>({
...l.arm,name:l.label,line:Number(l.label)-1}))};pe.reset(e.map(l=>l.pin).join()),pe.take(c,s.map(l=>l.series)),pe.end()}M(".td-png").addEventListener("click",()=>pe.
picture("tokendyno-pins"));yt(()=>pe.touch());new ResizeObserver(()=>pe.touch()).observe(element);var $n={conditions:"Ran under",choices:"Choices that differ",figures:"Measured",ledger:"Proof",text:"Texts"},He="";function Dt(){He=""}function Qn(e){let t=m("t\
h","arm-"+e.label),n=m("a","",e.title);return t.scope="col",n.href="?run="+encodeURIComponent(e.run),t.append(m("b","td-arm",e.label),n,m("small","","arm "+e.arm+
", "+Y(e.created)),m("small","",e.choices)),t}function Zn(e){let t=m("tr",e.group==="conditions"&&e.differs?"td-differs":""),n=m("th","",e.label);return n.scope=
"row",e.group==="conditions"&&e.differs&&n.append(m("small","","≠ differs")),t.append(n,...e.cells.map((o,r)=>{let s=m("td","",o.text);return s.dataset.arm=String(
r+1),o.against&&s.append(m("small","td-against",o.against)),o.note&&s.append(m("small","",o.note)),s})),t}function eo(e){let t=m("table"),n=m("tr");n.append(m("\
td"),...e.arms.map(Qn)),t.append(m("caption","td-hidden","Pinned arms, figure by figure"),m("thead")),t.tHead.append(n);for(let[o,r]of Object.entries($n)){let s=e.
rows.filter(l=>l.group===o);if(!s.length)continue;let a=m("tbody","td-"+o),i=m("tr"),c=m("th","td-group",r);c.colSpan=e.arms.length+1,c.scope="rowgroup",i.append(
c),a.append(i,...s.map(Zn)),t.append(a)}M(".td-side").replaceChildren(t)}async function Bt(e){let t=E.pins.join(),n;try{n=await J({ask:"beside",pins:t})}catch(o){
e()&&(q(o),M(".td-beside").hidden=!0);return}if(e()){q(n.missing.length?new Error("Not kept here (any more): "+n.missing.join(", ")+"."):null),M(".td-said").replaceChildren(
...n.remarks.map(o=>m("li","",o)));for(let o of n.arms)ke.set(o.pin,o.title+" "+o.arm+": "+o.choices);we(),eo(n),M(".td-beside").hidden=!1,M(".td-front").replaceChildren(),
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
