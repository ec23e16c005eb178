"use strict";(()=>{function k(a){let e=document.activeElement;return e instanceof HTMLElement&&a.contains(e)?e:null}var M=a=>{new MutationObserver(()=>a()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};var t=(a,e,r,o)=>{let i=document.createElement(e);return r&&(i.className=r),o!==void 0&&(i.textContent=o),a.append(i),i};function T(){return window.Plotly?Promise.resolve():window.tokendynoPlotly??=new Promise(a=>{let e=()=>{let r=document.createElement("script");r.src=settings.plotly,
r.addEventListener("load",()=>a()),r.addEventListener("error",()=>{r.remove(),setTimeout(e,1e3)}),document.head.append(r)};e()})}var z=260,H=a=>e=>getComputedStyle(a).getPropertyValue(e).trim();async function L(a,e,r){if(await new Promise(u=>setTimeout(u)),await T(),!a.isConnected)return;let o=H(a),i=o("--body-text-color-subdued"),n=o("--border-color-p\
rimary"),{xaxis:l,yaxis:d,...c}=r(o),s={gridcolor:n,linecolor:n,zeroline:!1,fixedrange:!0,automargin:!0,title:{font:{size:11}}};Plotly.react(a,e(o),{height:z,margin:{
t:8,b:38,l:52,r:12},paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:i,size:11,family:o("--font")||"sans-serif"},showlegend:!1,dragmode:!1,
hoverlabel:{font:{size:12}},xaxis:{...s,...l},yaxis:{...s,...d},...c},{displayModeBar:!1,showTips:!1}),new ResizeObserver(()=>{a.clientWidth&&Plotly.Plots.resize(
a)}).observe(a)}var R=58;function S(a,e){if(e.value===null)return;let r=t(a,"div","td-claim-chart");r.setAttribute("aria-hidden","true");let o=[e.low??e.value,e.high??e.value],
i=[e.claimed_low,e.claimed_high],n=e.unit==="x"?1:0,l=[...o,...i.filter(m=>m!==null),n],d=Math.min(...l),c=Math.max(...l),s=(c-d||Math.abs(c)||1)*.08,u=[d-s,c+s],
y=m=>i.some(A=>A!==null)?[{type:"rect",xref:"x",yref:"paper",x0:i[0]??u[0],x1:i[1]??u[1],y0:0,y1:1,fillcolor:m,opacity:.25,line:{width:0},layer:"below"}]:[],p=m=>({
type:"line",xref:"x",yref:"paper",x0:n,x1:n,y0:0,y1:1,line:{color:m,width:1,dash:"dot"}}),x=m=>({type:"bar",orientation:"h",y:[""],x:[Math.max(o[1]-o[0],(u[1]-u[0])/
250)],base:[o[0]],width:[.5],marker:{color:m},hoverinfo:"skip"}),g={"%":"%",x:"x"}[e.unit]??" "+e.unit,f="--body-text-color-subdued";L(r,m=>[x(m("--body-text-co\
lor"))],m=>({height:R,margin:{t:4,b:22,l:4,r:12,autoexpand:!1},hovermode:!1,shapes:[...y(m(f)),p(m(f))],xaxis:{range:u,nticks:6,tickformat:",~r",ticksuffix:g,automargin:!1},
yaxis:{visible:!1,automargin:!1}}))}var b=a=>a.replaceAll(" ","-");function E(a,e){let r=t(a,"div","td-claim-detail");t(r,"p","td-claim-said",e.said),t(r,"p","td-claim-source",e.document+": "+e.place+
"."),e.differs&&t(r,"p","td-claim-source","How it was tested: "+e.differs),e.machines.length||t(r,"p","",e.sentence);for(let o of e.machines){let i=t(r,"section",
"td-claim-machine"),n=t(i,"h2","",o.machine);t(n,"span","td-word "+b(o.word),o.word),o.remark&&t(n,"small","",o.remark),t(n,"small","",o.date+", "+o.versions);for(let l of o.
figures){let d=t(i,"div","td-claim-figure"),c=t(d,"p");t(c,"b","",l.title),t(c,"span","",l.measured),l.claimed&&t(c,"small",l.state,"claimed "+l.claimed+": "+l.
standing),S(d,l)}o.device==="cpu"&&e.about==="gpu"&&t(i,"p","td-claim-source","Measured on a CPU: it decides nothing about GPUs.");for(let l of o.doubts)t(i,"p",
"td-claim-doubt","Not as planned: "+l)}for(let[o,i]of Object.entries(e.commands)){let n=t(r,"details","td-claim-commands");t(n,"summary","","Commands on "+(o===
"cuda"?"a GPU":"a CPU")),t(n,"pre","",["tokendyno claims "+e.name+" --run",...i].join(`
`))}}var v=["Claim","Claimed","Measured","Verdict"];function _(a,e,r,o,i){a.replaceChildren();let n=t(a,"table");t(n,"caption","td-hidden","Claims, what was measured\
, and verdicts");let l=t(t(n,"thead"),"tr");for(let s of v)t(l,"th","",s).scope="col";let d="",c=null;for(let s of e.claims){if(r&&s.word!==r)continue;if(s.family!==
d){d=s.family,c=t(n,"tbody");let f=t(t(c,"tr","td-claim-family"),"th","",s.family_title);f.colSpan=v.length,f.scope="rowgroup"}let u=t(c,"tr","td-claim-row"),y=t(
u,"th");y.scope="row";let p=t(y,"button","td-claim-open",s.title),x=s.name===o;p.type="button",p.dataset.name=s.name,p.setAttribute("aria-expanded",String(x)),p.
addEventListener("click",()=>i(s.name));for(let[f,m]of[["Claimed",s.claimed],["Measured",s.measured]])t(u,"td","",m||"–").dataset.label=f;let g=t(u,"td");if(t(
g,"span","td-word "+b(s.word),s.word),s.remark&&t(g,"small","td-remark",s.remark),x){let f=t(t(c,"tr","td-claim-more"),"td");f.colSpan=v.length,E(f,s)}}}var O=element.querySelector(".td-claims-rows"),C=element.querySelector(".td-claims-counts"),P="",h=null;function w(){if(!props.value)return;let a=JSON.parse(props.
value);h===null&&(h=new URL(location.href).searchParams.get("name")||"");let e=k(element)?.dataset??{},r=e.name,o=e.word;C.replaceChildren();for(let[n,l]of[["",
a.claims.length],...Object.entries(a.counts)]){let d=t(C,"button",n&&b(n),l+" "+(n||"claims"));d.type="button",d.dataset.word=n,d.setAttribute("aria-pressed",String(
n===P)),d.addEventListener("click",()=>{P=n,w()})}_(O,a,P,h,n=>{h=n===h?"":n,window.tokendynoAddress?.tell("claims",["name"],[h]),w()}),(r!==void 0?[...O.querySelectorAll(
"button")].find(n=>n.dataset.name===r):o!==void 0?[...C.querySelectorAll("button")].find(n=>n.dataset.word===o):null)?.focus()}M(w);w();watch("value",w);})();
