"use strict";(()=>{var b=(i,a)=>{let r=!1,e=!1,o=()=>{r=!0},c=()=>{r&&(r=!1,setTimeout(()=>{e&&!r&&(e=!1,a())}))};i.addEventListener("pointerdown",s=>{s.button===0&&o()}),i.addEventListener(
"keydown",s=>{s.key===" "&&o()});for(let s of["pointerup","pointercancel","keyup","blur"])window.addEventListener(s,c);return()=>{r?e=!0:a()}};var n=(i,a,r,e)=>{let o=document.createElement(a);return r&&(o.className=r),e!==void 0&&(o.textContent=e),i.append(o),o};var k=element.querySelector(".td-story-list"),f=element.querySelector(".td-story-text");function u(i,a,r){let e=n(i,"p",a);return r.split("`").forEach((o,c)=>{c%
2?n(e,"code","",o):e.append(document.createTextNode(o))}),e}function E(){let{at:i,playing:a,stories:r}=JSON.parse(props.value),e=r.find(({name:t})=>t===i)||r[0];
if(k.replaceChildren(),f.replaceChildren(),!e)return;for(let{name:t,title:l}of r){let d=n(k,"button","",l);d.type="button",t===e.name&&d.setAttribute("aria-curr\
ent","true"),d.addEventListener("click",()=>{window.tokendynoAddress&&window.tokendynoAddress.tell("stories",["story"],[t]),trigger("choose",{name:t})})}let o=n(
f,"div","td-story-words"),c=n(f,"div","td-story-side");n(o,"h2","",e.title),e.text.forEach(t=>u(o,"",t));let s=n(c,"div","td-claim"),L=n(s,"p","td-claim-said",e.
claim+" ");n(L,"cite","",e.source);for(let{name:t,title:l,word:d,remark:g,sentence:x}of e.claims){let m=n(s,"p","td-claim-found","");n(m,"b","td-word "+d.replaceAll(
" ","-"),d[0].toUpperCase()+d.slice(1)+": ");let v=n(m,"a","",l);v.href="?"+new URLSearchParams({view:"claims",name:t}),v.title=x,m.append(document.createTextNode(
g?" ("+g+").":"."))}u(s,"td-claim-found",e.found);let y=n(c,"div","td-story-foot"),h=n(y,"button","td-take","Run it here");h.type="button",h.addEventListener("c\
lick",()=>trigger("take",{name:e.name})),u(y,"td-story-here",e.here);let p=e.played.find(({recording:t})=>t===a)||e.played[0],w=u(f,"td-story-recorded",(e.batching?
"":"Playing: ")+p.recorded+" ");if(e.batching){let t=n(w,"a","","Open the recording on the Batching page");t.href="?"+new URLSearchParams({view:"batching",run:"\
recorded-"+p.recording})}e.played.filter(t=>t!==p).forEach(({recording:t,shows:l})=>{let d=n(w,"button","td-story-also","Play: "+(l||"the recording of this stor\
y"));d.type="button",d.addEventListener("click",()=>trigger("choose",{name:e.name,recording:t}))})}E();watch("value",b(element,E));})();
