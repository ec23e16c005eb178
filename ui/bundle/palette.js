"use strict";(()=>{var g=(e,n)=>{let t=!1,o=!1,s=()=>{t=!0},r=()=>{t&&(t=!1,setTimeout(()=>{o&&!t&&(o=!1,n())}))};e.addEventListener("pointerdown",a=>{a.button===0&&s()}),e.addEventListener(
"keydown",a=>{a.key===" "&&s()});for(let a of["pointerup","pointercancel","keyup","blur"])window.addEventListener(a,r);return()=>{t?o=!0:n()}};var c=(e,n,t,o)=>{let s=document.createElement(n);return t&&(s.className=t),o!==void 0&&(s.textContent=o),e.append(s),s};var S=["true","none","auto"],d=e=>e.toLowerCase().replace(/[-_.]/g,""),f=e=>e.split(/[\s=:,;()[\]{}"']+/).map(d).filter(Boolean),E=e=>[e.name,e.title,e.axis_name,
e.axis].map(d).filter(Boolean);function y(e,n){let t=E(e),o=f([e.title,e.name,e.axis].join(" "));if(t.includes(n))return 16;if(!e.whole&&t.some(r=>r.startsWith(
n)))return 8;if(o.some(r=>r.startsWith(n)))return 4+(o.includes(n)?1:0)-(e.whole?3:0);let s=e.aliases.flatMap(f);return s.some(r=>r.startsWith(n))?2+(e.aliases.
some(r=>d(r)===n)?1.5:s.includes(n)?1:0):d([e.title,e.axis,e.group,e.summary,e.words,...e.aliases].join(" ")).includes(n)?1:0}function v(e,n){let t=f(n).filter(
r=>!S.includes(r)),o=t.map(r=>y(e,r));if(o.includes(0))return 0;let s=d(n).trim();return 1+o.reduce((r,a)=>r+a,0)+(E(e).includes(s)?16:0)}function L(e,n){let t=e.
map(o=>[o,v(o,n)]).filter(([,o])=>o);return n.trim()&&t.sort(([o,s],[r,a])=>a-s||+(o.state==="cannot run")-+(r.state==="cannot run")),t.map(([o])=>o)}var i=element.querySelector("dialog"),u=i.querySelector("input"),l=i.querySelector(".td-entries"),k=i.querySelector(".td-jumps"),w={runs:"","falls back":"▲ fall\
s back","cannot run":"✕ cannot run"},p="A",b="add",m=()=>{let e=L(props.value?JSON.parse(props.value):[],u.value),n=new Map;l.replaceChildren(),k.replaceChildren();
for(let t of e){if(!n.has(t.group)){let a=c(l,"section"),h=c(k,"button","",t.group.split(":")[0]);n.set(t.group,a),c(a,"h3","",t.group),h.type="button",h.addEventListener(
"click",()=>{l.scrollTop+=a.getBoundingClientRect().top-l.getBoundingClientRect().top,a.querySelector(".td-entry").focus({preventScroll:!0})})}let o=t.whole||t.
page||Object.keys(t.choices).length,s=c(n.get(t.group),o?"button":"p","td-entry "+t.state.replace(" ","-"));s instanceof HTMLButtonElement?s.type="button":s.tabIndex=
-1;let r=c(s,"span","td-entry-name",t.axis?t.axis+": ":"");c(r,"b","",t.title),c(s,"span","td-entry-summary",t.summary+(t.cost?" Costs "+t.cost+".":"")),t.argument&&
c(s,"code","td-entry-argument",t.argument),w[t.state]&&c(s,"span","td-entry-state",w[t.state]),t.why&&c(s,"span","td-entry-why",t.why),o&&s.addEventListener("cl\
ick",()=>{i.close(),t.page?[...document.querySelectorAll('#pages [role="tab"]')].find(a=>a.textContent.trim().toLowerCase()===t.page)?.click():trigger("take",{arm:p,
choices:t.choices,whole:t.whole})})}e.length||c(l,"p","td-empty",'Nothing matches. Try "fast", "int8", "cache" or "graph".')};u.addEventListener("input",m);i.addEventListener(
"keydown",e=>{let n=[...l.querySelectorAll("button.td-entry")],t=n.findIndex(o=>o===document.activeElement);e.key==="ArrowDown"&&(e.preventDefault(),(n[t+1]||n[0])?.
focus()),e.key==="ArrowUp"&&(e.preventDefault(),(t>0?n[t-1]:u).focus()),e.key==="Escape"&&(e.preventDefault(),i.close()),e.key==="Enter"&&document.activeElement===
u&&(e.preventDefault(),n[0]?.click())});i.addEventListener("close",()=>{let e=document.querySelector("#verdicts-"+p.toLowerCase()+' [data-press="'+b+'"]');e&&e.
focus()});i.addEventListener("click",e=>{e.target===i&&i.close()});i.querySelector(".td-close").addEventListener("click",()=>i.close());window.addEventListener(
"tokendyno-palette",e=>{if(!element.isConnected||i.open)return;let{detail:n}=e;p=n.arm,b=n.opener.dataset.press,i.querySelector("h2").textContent="Add to arm "+
p,u.value="",m(),i.showModal(),l.scrollTop=0,u.focus()});var C=g(l,m);watch("value",()=>{i.open&&C()});})();
