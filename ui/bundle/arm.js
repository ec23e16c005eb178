"use strict";(()=>{function h(s){let e=document.activeElement;return e instanceof HTMLElement&&s.contains(e)?e:null}var v=(s,e)=>{let o=!1,a=!1,r=()=>{o=!0},c=()=>{o&&(o=!1,setTimeout(()=>{a&&!o&&(a=!1,e())}))};s.addEventListener("pointerdown",i=>{i.button===0&&r()}),s.addEventListener(
"keydown",i=>{i.key===" "&&r()});for(let i of["pointerup","pointercancel","keyup","blur"])window.addEventListener(i,c);return()=>{o?a=!0:e()}};var n=(s,e,o,a)=>{let r=document.createElement(e);return o&&(r.className=o),a!==void 0&&(r.textContent=a),s.append(r),r};var k={note:"Note",fallback:"▲ Fallback",blocked:"✕ Blocked"},p=(s,e,o,a,r)=>{let c=n(s,"button",e,o);return c.type="button",a&&c.setAttribute("aria-label",
a),c.addEventListener("click",()=>r(c)),c},b=(s,e)=>window.dispatchEvent(new CustomEvent("tokendyno-palette",{detail:{arm:s,opener:e}})),u=!1,y=(s,e)=>{document.
querySelector("#axes-"+s).parentElement.closest(".td-card").classList.toggle("td-plain",u),e.setAttribute("aria-expanded",String(u))},f=element.querySelector(".\
td-verdicts"),x=()=>{let s=h(f)?.dataset.press??"";if(f.replaceChildren(),!props.value)return;let e=JSON.parse(props.value),o=n(f,"header");n(o,"span","td-badge",
e.arm),n(o,"strong","",e.title),e.memory&&(n(o,"small","td-memory"+(e.share>1?" over":""),e.memory).title=e.parts);let a=p(o,"td-form","All axes","",t=>{u=!u,y(
e.key,t)});a.dataset.press="form",y(e.key,a);let r=n(f,"div","td-chips"),c="+ Add an optimization";for(let t of e.chips){let d=n(r,"span","td-chip "+t.level,t.axis+
" ");n(d,"b","",t.choice),d.title=t.summary;let l="Remove "+t.axis+" "+t.choice;p(d,"td-remove","×",l,()=>trigger("fix",{choices:{[t.name]:t.default}})).dataset.
press=t.name}let i=e.chips.length>1?"+ Add":c;e.offers&&(p(r,"td-add",i,c,t=>b(e.arm,t)).dataset.press="add"),e.offers&&e.arm!=="A"&&(p(r,"td-add","A and one mo\
re","",t=>{trigger("copy",{}),b(e.arm,t)}).dataset.press="copy"),s&&f.querySelector('[data-press="'+CSS.escape(s)+'"]')?.focus();for(let t of e.verdicts){let d=n(
f,"p","td-verdict "+t.level);if(n(d,"span","",(k[t.level]||t.level)+": "+t.reason),t.fix_text){let l=n(d,"button","td-fix",t.fix_text);l.type="button",l.addEventListener(
"click",()=>trigger("fix",{choices:t.fix}))}if(t.source){let l=n(d,"details","td-source");n(l,"summary","","source");let m=/^https:/.test(t.source)&&/^\S+$/.test(
t.source),g=n(l,m?"a":"span","",t.source);m&&Object.assign(g,{href:t.source,target:"_blank",rel:"noopener noreferrer"})}}};x();watch("value",v(f,x));})();
