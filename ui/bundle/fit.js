"use strict";(()=>{var g=(t,e)=>{let n=!1,r=!1,a=()=>{n=!0},d=()=>{n&&(n=!1,setTimeout(()=>{r&&!n&&(r=!1,e())}))};t.addEventListener("pointerdown",h=>{h.button===0&&a()}),t.addEventListener(
"keydown",h=>{h.key===" "&&a()});for(let h of["pointerup","pointercancel","keyup","blur"])window.addEventListener(h,d);return()=>{n?r=!0:e()}};var s=(t,e,n,r)=>{let a=document.createElement(e);return n&&(a.className=n),r!==void 0&&(a.textContent=r),t.append(a),a};var M=2.5,y=74,E=t=>t.parts.reduce((e,n)=>e+n,0);function N(t,e){let n=Math.max(1,...e.map(E)),r=t.cards.find(a=>a.chosen).memory_bytes;return Math.max(n*1.12,Math.
min(r*1.12,n*M))}function R(t,e,n,r){let a=e.clientWidth||600,d=n.cards.filter(o=>o.memory_bytes<=r),h=[],i=o=>h.every(l=>Math.abs(l-o)>=y),c=new Set;for(let o of[
...d].sort((l,m)=>Number(m.chosen)-Number(l.chosen))){let l=o.memory_bytes/r*a;(o.chosen||i(l))&&(h.push(l),c.add(o))}for(let o of d){let l=100*o.memory_bytes/r+
"%",m=o.names.join(", ")+": "+o.size+(o.chosen?", chosen":""),p=s(e,"i","td-line-at"+(o.chosen?" chosen":""));if(p.style.left=l,p.title=m,!c.has(o))continue;let u=s(
t,"span","td-card-name"+(o.chosen?" chosen":""));s(u,"b","",o.names[0]+(o.names.length>1?" +"+(o.names.length-1):"")),s(u,"small","",o.size),u.title=m;let q=o.memory_bytes/
r*a;u.style.left=Math.min(Math.max(q,y/2),a-y/2)+"px"}let f=n.cards.find(o=>o.chosen);if(f.memory_bytes>r){let o=s(t,"span","td-card-name chosen td-beyond");s(o,
"b","",f.names[0]),s(o,"small","",f.size+" ▸")}}function k(t,e){let n=element.querySelector(".td-fit-chart"),[r,a,d]=[".td-legend",".td-axis",".td-bars"].map(
i=>n.querySelector(i));for(let i of[r,a,d])i.replaceChildren();t.parts.forEach((i,c)=>{s(r,"i","td-part part-"+x(t,c)),s(r,"span","",i)}),s(r,"i","td-key-line"),
s(r,"span","","memory of a GPU");let h=N(t,e);for(let i of e){let c=s(d,"div","td-bar "+i.margin.replaceAll(" ","-"));s(c,"span","td-bar-name",i.title);let f=s(
c,"div","td-stack");i.parts.forEach((m,p)=>{let u=s(f,"i","td-part part-"+x(t,p));u.style.width=100*m/h+"%",u.title=t.parts[p]});let o=i.cells[0].slice(0,1);s(f,
"span","td-bar-end",o+" "+i.peak).classList.toggle("td-inside",E(i)>.8*h)}R(a,s(d,"div","td-lines"),t,h)}function x(t,e){return t.encoder&&e>0?e+1:e}function S(t){let e=document.activeElement;return e instanceof HTMLElement&&t.contains(e)?e:null}function _(t,e){let n=element.querySelector(".td-fit-rows"),r=n.scrollLeft,a=S(n)?.dataset.row??"";n.replaceChildren();let d=s(n,"table");s(d,"caption","td-hidd\
en",t.heading);let h=s(s(d,"thead"),"tr");for(let c of[...t.columns,"On this machine"])s(h,"th","",c).scope="col";let i=s(d,"tbody");for(let c of e){let f=s(i,"\
tr",c.margin.replaceAll(" ","-"));c.cells.forEach((l,m)=>{let p=s(f,m===1?"th":"td",m===0?"td-margin":"",l);m===1&&(p.scope="row"),p.dataset.label=t.columns[m]});
let o=s(f,"td","td-run");if(c.not_here)s(o,"span","td-cannot","✕ Cannot run here"),c.not_here!==t.not_here&&s(o,"small","",c.not_here);else{let l=s(o,"button",
"td-run-this","Run this");l.type="button",l.dataset.row=JSON.stringify(c.choices),l.setAttribute("aria-label","Run this: "+c.title+" as arm B of Compare"),l.addEventListener(
"click",()=>trigger("take",{choices:c.choices}))}}n.scrollLeft=r,a&&[...n.querySelectorAll(".td-run-this")].find(c=>c.dataset.row===a)?.focus()}var b=!1,L=0,w=element.querySelector(".td-all");function v(){let t=element.querySelector(".td-fit");if(t.hidden=!props.value,!props.value)return;let e=JSON.parse(
props.value),n=e.rows.filter(d=>d.main),r=b?e.rows:n;w.hidden=n.length===e.rows.length,w.textContent=b?"Fewer rows":"All "+e.rows.length+" rows",w.setAttribute(
"aria-pressed",String(b));let a=element.querySelector(".td-fit-hint");a.textContent=e.not_here?"No row can be run from here: "+e.not_here:'"Run this" opens Comp\
are with this model and batch size, and the row as arm B. Arm A and the prompt stay.',k(e,n),_(e,r)}var C=g(element,v);w.addEventListener("click",()=>{b=!b,v()});
new ResizeObserver(t=>{let e=Math.round(t[0].contentRect.width);e&&e!==L&&(L=e,C())}).observe(element.querySelector(".td-fit"));function A(){if(!props.value)return;
let{context:t,most:e,label:n,encoder:r}=JSON.parse(props.value);window.tokendynoFit={context:t,most:e,label:n,encoder:r},window.dispatchEvent(new Event("tokendy\
no-fit"))}v();A();watch("value",()=>{C(),A()});})();
