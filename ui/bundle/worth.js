"use strict";(()=>{function v(){return window.Plotly?Promise.resolve():window.tokendynoPlotly??=new Promise(e=>{let t=()=>{let r=document.createElement("script");r.src=settings.plotly,
r.addEventListener("load",()=>e()),r.addEventListener("error",()=>{r.remove(),setTimeout(t,1e3)}),document.head.append(r)};t()})}var L=260,S=e=>t=>getComputedStyle(e).getPropertyValue(t).trim(),P=e=>e.replace(/[<>&]/g," ");async function E(e,t,r){if(await new Promise(f=>setTimeout(f)),await v(),
!e.isConnected)return;let o=S(e),a=o("--body-text-color-subdued"),m=o("--border-color-primary"),{xaxis:h,yaxis:d,...l}=r(o),p={gridcolor:m,linecolor:m,zeroline:!1,
fixedrange:!0,automargin:!0,title:{font:{size:11}}};Plotly.react(e,t(o),{height:L,margin:{t:8,b:38,l:52,r:12},paper_bgcolor:"rgba(0,0,0,0)",plot_bgcolor:"rgba(0\
,0,0,0)",font:{color:a,size:11,family:o("--font")||"sans-serif"},showlegend:!1,dragmode:!1,hoverlabel:{font:{size:12}},xaxis:{...p,...h},yaxis:{...p,...d},...l},
{displayModeBar:!1,showTips:!1}),new ResizeObserver(()=>{e.clientWidth&&Plotly.Plots.resize(e)}).observe(e)}function x(e){return[...new Set(e.points.map(r=>r.alike))].flatMap(r=>e.points.filter(o=>o.front&&o.alike===r).sort((o,a)=>o.latency_s-a.latency_s))}function z(e){
let t=x(e);return r=>r.mark||(r.front?String(t.indexOf(r)+1):"")}function C(e,t){let r=Math.max(...t.points.map(n=>n.memory_bytes))>4294967296,o=r?2**-30:2**-20,
a=t.quality?Math.max(...t.points.map(n=>n.quality)):0,m=n=>n.latency_s*1e3,h=n=>n.memory_bytes*o,d=n=>9+(a?13*Math.sqrt((n.quality||0)/a):0),l=x(t),p=l.flatMap(
(n,s)=>s&&l[s-1].alike!==n.alike?[null,n]:[n]),f=t.points.filter(n=>!n.front),g=z(t),i=(n,s,w)=>({x:n.map(m),y:n.map(h),mode:"markers+text",cliponaxis:!1,marker:{
size:n.map(d),color:w?s:"rgba(0,0,0,0)",line:{color:s,width:1.5}},text:n.map(g),textposition:"top center",textfont:{size:11,color:s},customdata:n.map(k=>P(k.label+
": "+k.text)),hovertemplate:"%{customdata}<extra></extra>"});return E(e,n=>[{x:p.map(s=>s&&m(s)),y:p.map(s=>s&&h(s)),mode:"lines",line:{color:n("--body-text-col\
or-subdued"),width:1,dash:"dot"},hoverinfo:"skip"},i(f,n("--body-text-color-subdued"),!1),i(l,n("--body-text-color"),!0)],()=>({xaxis:{title:{text:"Time per tok\
en (ms)",font:{size:11}}},yaxis:{title:{text:"Peak memory ("+(r?"GiB":"MiB")+")",font:{size:11}}},margin:{t:22,b:38,l:52,r:24}}))}function T(e,t){let r=(l,p,f)=>{
let g=document.createElement(p);return g.textContent=f||"",l.append(g),g},o=r(e,"figure"),a=x(t);o.className="td-pareto",r(o,"figcaption",t.quality?"Time, memor\
y and quality":"Time and memory");let m=r(o,"div");m.className="td-plotted",m.setAttribute("aria-hidden","true");let h=new Set(t.points.map(l=>l.alike)).size>1?
" of the same sizes":"";r(o,"p","What no other"+h+" beats in "+(t.quality?"time, memory and "+t.quality+" together; a larger point has more of the last:":"time \
and memory together:"));let d=r(o,"ol");for(let l of a){let p=r(d,"li",l.label+": "+l.text);/^\d+$/.test(l.mark)&&(p.value=Number(l.mark))}C(m,t)}var c=(e,t,r,o)=>{let a=document.createElement(t);return r&&(a.className=r),o!==void 0&&(a.textContent=o),e.append(a),a};var _=e=>{new MutationObserver(()=>e()).observe(document.body,{attributes:!0,attributeFilter:["class"]})};var M=1e3,q=4e3,u=e=>element.querySelector(".td-worth-"+e),y=(e,t)=>{u(e).textContent!==t&&(u(e).textContent=t)},b=u("result");function O({draw:e,begin:t,explained:r}){let o="",a="",m=null,h=0,d=i=>{let{course:n,...s}=i,w=JSON.stringify(s);w!==a&&(a=w,m=i,b.replaceChildren(),e(i),window.
dispatchEvent(new Event("tokendyno-measured")))},l=i=>{let n=i.state==="running";u("begin").hidden=n,u("stop").hidden=!n,u("again").hidden=!i.again,u("progress").
hidden=!n,u("progress").value=i.share,y("sentence",i.sentence),y("doing",[i.doing,i.left].filter(Boolean).join(" · ")),y("failure",i.message)},p=async()=>{clearTimeout(
h);let i=o;if(!i||!element.isConnected)return;let n=M;try{let s=document.hidden?null:JSON.parse(await server.pull({id:i}));if(i!==o)return;if(s&&s.error){y("fai\
lure",s.error);return}if(s){if(d(s),l(s.course),s.course.state==="done")return;s.course.state!=="running"&&(n=q)}}catch{y("doing","The server does not answer. R\
etrying; nothing is lost.")}h=setTimeout(p,n)},f=()=>{if(u("link").hidden=!o,!o)return;let i=new URL(location.href);i.search="?"+new URLSearchParams({[settings.
key_of_address]:o}),Object.assign(u("address"),{href:i.href,textContent:i.search})},g=()=>{o=props.value||"",a="",m=null,b.replaceChildren(),y("failure",""),y("\
doing",""),y("sentence",o?"":r),f(),o&&p()};u("begin").addEventListener("click",()=>trigger("begin",t())),u("stop").addEventListener("click",()=>{trigger("halt",
{})}),u("again").addEventListener("click",()=>{trigger("again",{}),h=setTimeout(p,600)}),_(()=>{m&&(b.replaceChildren(),e(m))}),g(),watch("value",()=>{(props.value||
"")!==o&&g()})}var R="For arms that differ in several choices: each alone, all but one, and one after the other, for latency, memory and quality.",N=(e,t)=>{if(!t){c(e,"span",
"td-worth-unknown","–");return}let r=c(e,"span","td-worth-track"),[o,a]=[t.begin,t.end].sort((d,l)=>d-l),m=c(r,"i","td-worth-bar"+(t.better==="yes"?" better":
t.end===t.begin?" none":""));if(m.style.left=100*o+"%",m.style.width=100*(a-o)+"%",t.low!==null){let d=c(r,"i","td-worth-whisker");d.style.left=100*t.low+"%",d.
style.width=100*(t.high-t.low)+"%"}let h=c(e,"span","td-worth-number"+(t.better==="yes"?" better":""),t.text);t.interval&&c(h,"small","",t.interval)},Y=(e,t,r)=>{
let o=c(e,"table",""),a=c(o,"caption","",r.title);c(a,"small","",r.what);let m=c(c(o,"thead",""),"tr","");for(let d of["Step",...t])c(m,"th","",d).scope="col";let h=c(
o,"tbody","");r.rows.forEach(d=>{let l=c(h,"tr",""),p=c(l,"th","",d.title);p.scope="row";for(let f of d.remarks)c(p,"small","",f);for(let f of d.bars)N(c(l,"td",
""),f)})},A=e=>{for(let t of e.groups){let r=c(b,"div","td-worth-group");Object.assign(r,{tabIndex:0,ariaLabel:t.title}),r.setAttribute("role","region"),Y(r,e.figures,
t)}c(b,"p","td-worth-note",e.note),e.pareto&&T(b,e.pareto)};O({draw:A,begin:()=>({}),explained:R});})();
