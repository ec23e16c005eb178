"use strict";(()=>{function k(a){let e=document.activeElement;return e instanceof HTMLElement&&a.contains(e)?e:null}var M=a=>{new MutationObserver(()=>a()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};var t=(a,e,r,o)=>{let i=document.createElement(e);return r&&(i.className=r),o!==void 0&&(i.textContent=o),a.append(i),i};function T(){return window.Plotly?Promise.resolve():window.tokendynoPlotly??=new Promise(a=>{let e=()=>{let r=document.createElement("script");r.src=settings.plotly,
r.addEventListener("load",()=>a()),r.addEventListener("error",()=>{r.remove(),setTimeout(e,1e3)}),document.head.append(r)};e()})}var z=260,H=a=>e=>getComputedStyle(a).getPropertyValue(e).trim();async function L(a,e,r){if(await new Promise(u=>setTimeout(u)),await T(),!a.isConnected)return;let o=H(a),i=o("--body-text-color-subdued"),d=o("--border-color-p\
rimary"),{xaxis:n,yaxis:m,...l}=r(o),s={gridcolor:d,linecolor:d,zeroline:!1,fixedrange:!0,automargin:!0,title:{font:{size:11}}};Plotly.react(a,e(o),{height:z,margin:{
t:8,b:38,l:52,r:12},paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0,0,0,0)",font:{color:i,size:11,family:o("--font")||"sans-serif"},showlegend:!1,dragmode:!1,
hoverlabel:{font:{size:12}},xaxis:{...s,...n},yaxis:{...s,...m},...l},{displayModeBar:!1,showTips:!1}),new ResizeObserver(()=>{a.clientWidth&&Plotly.Plots.resize(
a)}).observe(a)}var R=58;function S(a,e){if(e.value===null)return;let r=t(a,"div","td-claim-chart");r.setAttribute("aria-hidden","true");let o=[e.low??e.value,e.high??e.value],
i=[e.claimed_low,e.claimed_high],d=e.unit==="x"?1:0,n=[...o,...i.filter(c=>c!==null),d],m=Math.min(...n),l=Math.max(...n),s=(l-m||Math.abs(l)||1)*.08,u=[m-s,l+s],
y=c=>i.some(A=>A!==null)?[{type:"rect",xref:"x",yref:"paper",x0:i[0]??u[0],x1:i[1]??u[1],y0:0,y1:1,fillcolor:c,opacity:.25,line:{width:0},layer:"below"}]:[],p=c=>({
type:"line",xref:"x",yref:"paper",x0:d,x1:d,y0:0,y1:1,line:{color:c,width:1,dash:"dot"}}),x=c=>({type:"bar",orientation:"h",y:[""],x:[Math.max(o[1]-o[0],(u[1]-u[0])/
250)],base:[o[0]],width:[.5],marker:{color:c},hoverinfo:"skip"}),g={"%":"%",x:"x"}[e.unit]??" "+e.unit,f="--body-text-color-subdued";L(r,c=>[x(c("--body-text-co\
lor"))],c=>({height:R,margin:{t:4,b:22,l:4,r:12,autoexpand:!1},hovermode:!1,shapes:[...y(c(f)),p(c(f))],xaxis:{range:u,nticks:6,tickformat:",~r",ticksuffix:g,automargin:!1},
yaxis:{visible:!1,automargin:!1}}))}var w=a=>a.replaceAll(" ","-");function E(a,e){let r=t(a,"div","td-claim-detail");t(r,"p","td-claim-said",e.said),t(r,"p","td-claim-source",e.document+": "+e.place+
"."),e.differs&&t(r,"p","td-claim-source","How it was tested: "+e.differs),e.machines.length||t(r,"p","",e.sentence);for(let o of e.machines){let i=t(r,"section",
"td-claim-machine"),d=t(i,"h2","",o.machine);t(d,"span","td-word "+w(o.word),o.word),o.remark&&t(d,"small","",o.remark),t(d,"small","",o.date+", "+o.versions);for(let n of o.
figures){let m=t(i,"div","td-claim-figure"),l=t(m,"p");t(l,"b","",n.title),t(l,"span","",n.measured),n.claimed&&t(l,"small",n.state,"claimed "+n.claimed+": "+n.
standing),S(m,n)}o.device==="cpu"&&e.about==="gpu"&&t(i,"p","td-claim-source","Measured on a CPU: it decides nothing about GPUs.");for(let n of o.doubts)t(i,"p",
"td-claim-doubt","Not as planned: "+n)}for(let[o,i]of Object.entries(e.commands)){let d=t(r,"details","td-claim-commands");t(d,"summary","","Commands on "+(o===
"cuda"?"a GPU":"a CPU")),t(d,"pre","",["tokendyno claims "+e.name+" --run",...i].join(`
`))}}var v=["Claim","Claimed","Measured","Verdict"];function _(a,e,r,o,i){a.replaceChildren();let d=t(a,"table");t(d,"caption","td-hidden","Claims, what was measured\
, and verdicts");let n=t(t(d,"thead"),"tr");for(let s of v)t(n,"th","",s).scope="col";let m="",l=null;for(let s of e.claims){if(r&&s.word!==r)continue;if(s.family!==
m){m=s.family,l=t(d,"tbody");let f=t(t(l,"tr","td-claim-family"),"th","",s.family_title);f.colSpan=v.length,f.scope="rowgroup"}let u=t(l,"tr","td-claim-row"),y=t(
u,"th");y.scope="row";let p=t(y,"button","td-claim-open",s.title),x=s.name===o;p.type="button",p.dataset.name=s.name,p.setAttribute("aria-expanded",String(x)),p.
addEventListener("click",()=>i(s.name));for(let[f,c]of[["Claimed",s.claimed],["Measured",s.measured]])t(u,"td","",c||"–").dataset.label=f;let g=t(u,"td");if(t(
g,"span","td-word "+w(s.word),s.word),s.remark&&t(g,"small","td-remark",s.remark),x){let f=t(t(l,"tr","td-claim-more"),"td");f.colSpan=v.length,E(f,s)}}}var O=element.querySelector(".td-claims-rows"),C=element.querySelector(".td-claims-counts"),P="",h=null;function b(){if(!props.value)return;let a=JSON.parse(props.
value);h===null&&(h=new URL(location.href).searchParams.get("name")||"");let e=k(element)?.dataset??{},r=e.name,o=e.word;C.replaceChildren();let i=[["",a.claims.
length],...Object.entries(a.counts)];for(let[n,m]of i){let l=t(C,"button",n&&w(n),m+" "+(n||"claims"));l.type="button",l.dataset.word=n,l.setAttribute("aria-pre\
ssed",String(n===P)),l.addEventListener("click",()=>{P=n,b()})}_(O,a,P,h,n=>{h=n===h?"":n,window.tokendynoAddress?.tell("claims",["name"],[h]),b()}),(r!==void 0?
[...O.querySelectorAll("button")].find(n=>n.dataset.name===r):o!==void 0?[...C.querySelectorAll("button")].find(n=>n.dataset.word===o):null)?.focus()}M(b);b();watch(
"value",b);})();
