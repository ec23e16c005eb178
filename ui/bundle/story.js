"use strict";(()=>{var v=(s,a)=>{let r=!1,e=!1,o=()=>{r=!0},c=()=>{r&&(r=!1,setTimeout(()=>{e&&!r&&(e=!1,a())}))};s.addEventListener("pointerdown",i=>{i.button===0&&o()}),s.addEventListener(
"keydown",i=>{i.key===" "&&o()});for(let i of["pointerup","pointercancel","keyup","blur"])window.addEventListener(i,c);return()=>{r?e=!0:a()}};var n=(s,a,r,e)=>{let o=document.createElement(a);return r&&(o.className=r),e!==void 0&&(o.textContent=e),s.append(o),o};var b=element.querySelector(".td-story-list"),f=element.querySelector(".td-story-text");function u(s,a,r){let e=n(s,"p",a);return r.split("`").forEach((o,c)=>{c%
2?n(e,"code","",o):e.append(document.createTextNode(o))}),e}function E(){let{at:s,playing:a,stories:r}=JSON.parse(props.value),e=r.find(({name:t})=>t===s)||r[0];
if(b.replaceChildren(),f.replaceChildren(),!e)return;for(let{name:t,title:l}of r){let d=n(b,"button","",l);d.type="button",t===e.name&&d.setAttribute("aria-curr\
ent","true"),d.addEventListener("click",()=>{window.tokendynoAddress&&window.tokendynoAddress.tell("stories",["story"],[t]),trigger("choose",{name:t})})}window.
tokendynoAddress?.title("stories",s&&e.title);let o=n(f,"div","td-story-words"),c=n(f,"div","td-story-side");n(o,"h2","",e.title),e.text.forEach(t=>u(o,"",t));let i=n(
c,"div","td-claim"),L=n(i,"p","td-claim-said",e.claim+" ");n(L,"cite","",e.source);for(let{name:t,title:l,word:d,remark:g,sentence:x}of e.claims){let m=n(i,"p",
"td-claim-found","");n(m,"b","td-word "+d.replaceAll(" ","-"),d[0].toUpperCase()+d.slice(1)+": ");let k=n(m,"a","",l);k.href="?"+new URLSearchParams({view:"clai\
ms",name:t}),k.title=x,m.append(document.createTextNode(g?" ("+g+").":"."))}u(i,"td-claim-found",e.found);let y=n(c,"div","td-story-foot"),h=n(y,"button","td-ta\
ke","Run it here");h.type="button",h.addEventListener("click",()=>trigger("take",{name:e.name})),u(y,"td-story-here",e.here);let p=e.played.find(({recording:t})=>t===
a)||e.played[0],w=u(f,"td-story-recorded",(e.batching?"":"Playing: ")+p.recorded+" ");if(e.batching){let t=n(w,"a","","Open the recording on the Batching page");
t.href="?"+new URLSearchParams({view:"batching",run:"recorded-"+p.recording})}e.played.filter(t=>t!==p).forEach(({recording:t,shows:l})=>{let d=n(w,"button","td\
-story-also","Play: "+(l||"the recording of this story"));d.type="button",d.addEventListener("click",()=>trigger("choose",{name:e.name,recording:t}))})}E();watch(
"value",v(element,E));})();
