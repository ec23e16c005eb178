"use strict";(()=>{function T(){return window.Plotly?Promise.resolve():window.tokendynoPlotly??=new Promise(e=>{let o=()=>{let r=document.createElement("script");r.src=settings.plotly,
r.addEventListener("load",()=>e()),r.addEventListener("error",()=>{r.remove(),setTimeout(o,1e3)}),document.head.append(r)};o()})}var R=260,A=e=>o=>getComputedStyle(e).getPropertyValue(o).trim(),y=e=>e.replace(/[<>&]/g," ");async function v(e,o,r){if(await new Promise(g=>setTimeout(g)),await T(),
!e.isConnected)return;let t=A(e),s=t("--body-text-color-subdued"),d=t("--border-color-primary"),{xaxis:f,yaxis:p,...n}=r(t),l={gridcolor:d,linecolor:d,zeroline:!1,
fixedrange:!0,automargin:!0,title:{font:{size:11}}};Plotly.react(e,o(t),{height:R,margin:{t:8,b:38,l:52,r:12},paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0\
,0,0,0)",font:{color:s,size:11,family:t("--font")||"sans-serif"},showlegend:!1,dragmode:!1,hoverlabel:{font:{size:12}},xaxis:{...l,...f},yaxis:{...l,...p},...n},
{displayModeBar:!1,showTips:!1}),new ResizeObserver(()=>{e.clientWidth&&Plotly.Plots.resize(e)}).observe(e)}function E(e){return[...new Set(e.points.map(r=>r.alike))].flatMap(r=>e.points.filter(t=>t.front&&t.alike===r).sort((t,s)=>t.latency_s-s.latency_s))}function N(e){
let o=E(e);return r=>r.mark||(r.front?String(o.indexOf(r)+1):"")}function I(e,o){let r=Math.max(...o.points.map(a=>a.memory_bytes))>4294967296,t=r?2**-30:2**-20,
s=o.quality?Math.max(...o.points.map(a=>a.quality)):0,d=a=>a.latency_s*1e3,f=a=>a.memory_bytes*t,p=a=>9+(s?13*Math.sqrt((a.quality||0)/s):0),n=E(o),l=n.flatMap(
(a,c)=>c&&n[c-1].alike!==a.alike?[null,a]:[a]),g=o.points.filter(a=>!a.front),m=N(o),i=(a,c,k)=>({x:a.map(d),y:a.map(f),mode:"markers+text",cliponaxis:!1,marker:{
size:a.map(p),color:k?c:"rgba(0,0,0,0)",line:{color:c,width:1.5}},text:a.map(m),textposition:"top center",textfont:{size:11,color:c},customdata:a.map(S=>y(S.label+
": "+S.text)),hovertemplate:"%{customdata}<extra></extra>"});return v(e,a=>[{x:l.map(c=>c&&d(c)),y:l.map(c=>c&&f(c)),mode:"lines",line:{color:a("--body-text-col\
or-subdued"),width:1,dash:"dot"},hoverinfo:"skip"},i(g,a("--body-text-color-subdued"),!1),i(n,a("--body-text-color"),!0)],()=>({xaxis:{title:{text:"Time per tok\
en (ms)",font:{size:11}}},yaxis:{title:{text:"Peak memory ("+(r?"GiB":"MiB")+")",font:{size:11}}},margin:{t:22,b:38,l:52,r:24}}))}function M(e,o){let r=(n,l,g)=>{
let m=document.createElement(l);return m.textContent=g||"",n.append(m),m},t=r(e,"figure"),s=E(o);t.className="td-pareto",r(t,"figcaption",o.quality?"Time, memor\
y and quality":"Time and memory");let d=r(t,"div");d.className="td-plotted",d.setAttribute("aria-hidden","true");let f=new Set(o.points.map(n=>n.alike)).size>1?
" of the same sizes":"";r(t,"p","What no other"+f+" beats in "+(o.quality?"time, memory and "+o.quality+" together; a larger point has more of the last:":"time \
and memory together:"));let p=r(t,"ol");for(let n of s){let l=r(p,"li",n.label+": "+n.text);/^\d+$/.test(n.mark)&&(l.value=Number(n.mark))}I(d,o)}var u=(e,o,r,t)=>{let s=document.createElement(o);return r&&(s.className=r),t!==void 0&&(s.textContent=t),e.append(s),s};var O=e=>{new MutationObserver(()=>e()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};var Y=1e3,B=4e3,h=e=>element.querySelector(".td-worth-"+e),x=(e,o)=>{h(e).textContent!==o&&(h(e).textContent=o)},b=h("result");function P(e,o,r){let t=u(e,"figu\
re",r||"");u(t,"figcaption","",o);let s=u(t,"div","td-plotted");return s.setAttribute("aria-hidden","true"),{figure:t,plot:s}}function L({draw:e,begin:o,explained:r}){
let t="",s="",d=null,f=0,p=i=>{let{course:a,...c}=i,k=JSON.stringify(c);k!==s&&(s=k,d=i,b.replaceChildren(),e(i),window.dispatchEvent(new Event("tokendyno-measu\
red")))},n=i=>{let a=i.state==="running";h("begin").hidden=a,h("stop").hidden=!a,h("again").hidden=!i.again,h("progress").hidden=!a,h("progress").value=i.share,
x("sentence",i.sentence),x("doing",[i.doing,i.left].filter(Boolean).join(" · ")),x("failure",i.message)},l=async()=>{clearTimeout(f);let i=t;if(!i||!element.isConnected)
return;let a=Y;try{let c=document.hidden?null:JSON.parse(await server.pull({id:i}));if(i!==t)return;if(c&&c.error){x("failure",c.error);return}if(c){if(p(c),n(c.
course),c.course.state==="done")return;c.course.state!=="running"&&(a=B)}}catch{x("doing","The server does not answer. Retrying; nothing is lost.")}f=setTimeout(
l,a)},g=()=>{if(h("link").hidden=!t,!t)return;let i=new URL(location.href);i.search="?"+new URLSearchParams({[settings.key_of_address]:t}),Object.assign(h("addr\
ess"),{href:i.href,textContent:i.search})},m=()=>{t=props.value||"",s="",d=null,b.replaceChildren(),x("failure",""),x("doing",""),x("sentence",t?"":r),g(),t&&l()};
h("begin").addEventListener("click",()=>trigger("begin",o())),h("stop").addEventListener("click",()=>{trigger("halt",{})}),h("again").addEventListener("click",()=>{
trigger("again",{}),f=setTimeout(l,600)}),O(()=>{d&&(b.replaceChildren(),e(d))}),m(),watch("value",()=>{(props.value||"")!==t&&m()})}var j="One arm at every combination of these values, in rounds that favour none: lines with 95% intervals, and what no other beats.",_=["#4269d0","#ff725c","#3c\
a951","#a463f2","#9c6b4e"],q=["solid","dash","dot","dashdot","longdash"],D=element.querySelectorAll(".td-sweep-name"),H=element.querySelectorAll(".td-sweep-valu\
es"),z=[...D],w=[...H];z.forEach((e,o)=>{o&&(u(e,"option","","nothing else").value="");for(let t of settings.varied)u(e,"option","",t.title).value=t.name;let r=()=>{
let t=settings.varied.find(s=>s.name===e.value);w[o].hidden=!t,w[o].value=t?t.values:""};e.addEventListener("change",r),r()});var U=()=>({arm:element.querySelector(
".td-sweep-arm").value,over:z.map((e,o)=>[e.value,w[o].value]).filter(([e])=>e),quality:element.querySelector(".td-sweep-quality input").checked});for(let e of w)
e.addEventListener("keydown",o=>{o.key==="Enter"&&h("begin").click()});function G(e,o,r){let t=o.places.map(p=>o.numbers?Number(p.replaceAll(",","")):y(p)),s=p=>Math.
max(...r.lines.flatMap(n=>n[p].filter(l=>l!==null)),0),d=1.05*Math.min(Math.max(s("high"),s("values")),2*s("values")),f=(p,n)=>r.lines.length>1?_[n%_.length]:p(
"--body-text-color");return v(e,p=>r.lines.flatMap((n,l)=>{let g=t.flatMap((m,i)=>n.low[i]===null?[]:[[m,n.low[i]],[m,n.high[i]],[null,null]]);return[{x:g.map(([
m])=>m),y:g.map(([,m])=>m),mode:"lines",line:{color:f(p,l),width:6},opacity:.4,hoverinfo:"skip",showlegend:!1},{x:t,y:n.values,mode:"lines+markers",name:y(n.title),
line:{color:f(p,l),width:1.5,dash:q[l%q.length]},marker:{size:6},customdata:n.texts.map(m=>(n.title?y(n.title)+": ":"")+m),hovertemplate:"%{customdata}<extra></\
extra>"}]}),()=>({xaxis:{title:{text:y(o.horizontal),font:{size:11}},...o.numbers?{type:"log",tickvals:t,ticktext:o.places}:{type:"category"}},yaxis:{title:{text:r.
unit,font:{size:11}},range:[0,d||1]},showlegend:r.lines.length>1,legend:{orientation:"h",y:1.02,yanchor:"bottom",x:0},margin:{t:r.lines.length>1?28:8,b:38,l:52,
r:12}}))}function J(e,o,r){return v(e,t=>[{type:"heatmap",z:r.values,x:r.columns.map(y),y:r.rows.map(y),text:r.texts,texttemplate:"%{text}",hoverinfo:"skip",showscale:!1,
xgap:2,ygap:2,colorscale:[[0,t("--background-fill-secondary")],[1,t("--input-border-color")]],textfont:{color:t("--body-text-color")}}],()=>({xaxis:{type:"categ\
ory",title:{text:y(o.across),font:{size:11}}},yaxis:{type:"category",autorange:"reversed",title:{text:y(o.down),font:{size:11}}}}))}function V(e,o){let r=u(e,"d\
iv","td-worth-group"),[t,...s]=o.table;Object.assign(r,{tabIndex:0,ariaLabel:"Points of the sweep"}),r.setAttribute("role","region");let d=u(r,"table","td-sweep\
-table"),f=u(u(d,"thead",""),"tr",""),p=u(d,"tbody","");for(let n of t){let l=u(f,n?"th":"td","",n);n&&(l.scope="col")}for(let n of s){let l=u(p,"tr","");n.forEach(
(g,m)=>{let i=u(l,m?"td":"th","",g);m||(i.scope="row")})}}var C="",W=e=>{C!==e.course.id&&(C=e.course.id,z.forEach((o,r)=>{let[t,s]=e.over[r]||["",""];o.value=t,
w[r].value=s,w[r].hidden=!t}))},F=e=>{W(e),u(b,"p","td-sweep-arm-said","Arm: "+(e.arm||"every axis at its default")+".");let o=u(b,"div","td-plots"),r=t=>t.lines.
every(s=>s.values.every(d=>d===null));for(let t of e.charts)r(t)||G(P(o,t.title).plot,e,t);for(let t of e.heats)t.values.flat().some(s=>s!==null)&&J(P(o,t.title+
" by both").plot,e,t);e.pareto&&M(o,e.pareto),V(b,e),u(b,"p","td-worth-note",e.note)};L({draw:F,begin:U,explained:j});})();
