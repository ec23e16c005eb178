"use strict";(()=>{var E=(d,s)=>{let o=!1,e=!1,r=()=>{o=!0},a=()=>{o&&(o=!1,setTimeout(()=>{e&&!o&&(e=!1,s())}))};d.addEventListener("pointerdown",c=>{c.button===0&&r()}),d.addEventListener(
"keydown",c=>{c.key===" "&&r()});for(let c of["pointerup","pointercancel","keyup","blur"])window.addEventListener(c,a);return()=>{o?e=!0:s()}};var n=(d,s,o,e)=>{let r=document.createElement(s);return o&&(r.className=o),e!==void 0&&(r.textContent=e),d.append(r),r};var L=element.querySelector(".td-story-list"),f=element.querySelector(".td-story-text");function u(d,s,o){let e=n(d,"p",s);return o.split("`").forEach((r,a)=>{a%
2?n(e,"code","",r):e.append(document.createTextNode(r))}),e}function x(d){window.tokendynoAddress&&window.tokendynoAddress.tell("stories",["story"],[d]),trigger(
"choose",{name:d})}function P(){let{at:d,playing:s,stories:o}=JSON.parse(props.value),e=o.find(({name:t})=>t===d)||o[0];if(L.replaceChildren(),f.replaceChildren(),
!e)return;for(let{name:t,title:l}of o){let i=n(L,"button","",l);i.type="button",t===e.name&&i.setAttribute("aria-current","true"),i.addEventListener("click",()=>x(
t))}window.tokendynoAddress?.title("stories",d&&e.title);let r=o.filter(({batching:t})=>!t),a=r.indexOf(e);window.tokendynoStory=a<0?null:{title:e.title,claim:e.
claim,chart:e.chart,place:a,count:r.length,before:r[a-1],after:r[a+1],open:x};let c=n(f,"div","td-story-words"),h=n(f,"div","td-story-side");n(c,"h2","",e.title),
e.text.forEach(t=>u(c,"",t));let p=n(h,"div","td-claim"),S=n(p,"p","td-claim-said",e.claim+" ");n(S,"cite","",e.source);for(let{name:t,title:l,word:i,remark:b,sentence:A}of e.
claims){let y=n(p,"p","td-claim-found","");n(y,"b","td-word "+i.replaceAll(" ","-"),i[0].toUpperCase()+i.slice(1)+": ");let v=n(y,"a","",l);v.href="?"+new URLSearchParams(
{view:"claims",name:t}),v.title=A,y.append(document.createTextNode(b?" ("+b+").":"."))}u(p,"td-claim-found",e.found);let w=n(h,"div","td-story-foot"),g=n(w,"but\
ton","td-take","Run it here");g.type="button",g.addEventListener("click",()=>trigger("take",{name:e.name})),u(w,"td-story-here",e.here);let m=e.played.find(({recording:t})=>t===
s)||e.played[0],k=u(f,"td-story-recorded",(e.batching?"":"Playing: ")+m.recorded+" ");if(e.batching){let t=n(k,"a","","Open the recording on the Batching page");
t.href="?"+new URLSearchParams({view:"batching",run:"recorded-"+m.recording})}e.played.filter(t=>t!==m).forEach(({recording:t,shows:l})=>{let i=n(k,"button","td\
-story-also","Play: "+(l||"the recording of this story"));i.type="button",i.addEventListener("click",()=>trigger("choose",{name:e.name,recording:t}))})}P();watch(
"value",E(element,P));})();
