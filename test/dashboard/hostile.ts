/** Texts that would do something if they were ever markup, and a look at whether one did. */
import type { Page } from 'playwright-core'

export const DO = 'window.hurt=1'

export const HOSTILE: readonly string[] = [
  `<script>${DO}</script>`,
  `</script><script>${DO}</script>`,
  `<img src=x onerror=${DO}>`,
  `"><img src=x onerror=${DO}>`,
  `'><img src=x onerror=${DO}>`,
  `<svg onload=${DO}>`,
  `<svg><script>${DO}</script></svg>`,
  `<svg><animate onbegin=${DO} attributeName=x dur=1s>`,
  `<iframe srcdoc="<script>parent.hurt=1</script>"></iframe>`,
  `<iframe src="javascript:parent.hurt=1"></iframe>`,
  `<object data="javascript:${DO}"></object>`,
  `<embed src="javascript:${DO}">`,
  `<body onload=${DO}>`,
  `<details open ontoggle=${DO}>x</details>`,
  `<input autofocus onfocus=${DO}>`,
  `<select autofocus onfocus=${DO}>`,
  `<textarea autofocus onfocus=${DO}>`,
  `<video><source onerror=${DO}></video>`,
  `<audio src=x onerror=${DO}>`,
  `<marquee onstart=${DO}>x</marquee>`,
  `<a href="javascript:${DO}">x</a>`,
  `javascript:${DO}`,
  `JaVaScRiPt:${DO}//`,
  `data:text/html,<script>${DO}</script>`,
  `" onmouseover="${DO}" x="`,
  `' onfocus='${DO}' autofocus='`,
  `\` onclick=${DO} \``,
  `<math><mi//xlink:href="data:x,<script>${DO}</script>">`,
  `<style>@import'javascript:${DO}';*{display:none}</style>`,
  `<link rel=stylesheet href="data:text/css,*{display:none}">`,
  `<meta http-equiv=refresh content="0;url=javascript:${DO}">`,
  `<base href="//evil.example/">`,
  `<form action="javascript:${DO}"><button autofocus>x</button></form>`,
  `<template><script>${DO}</script></template>`,
  `<noscript><p title="</noscript><img src=x onerror=${DO}>">`,
  `<x-hurt onclick=${DO} style=position:fixed;inset:0>x</x-hurt>`,
  `<!--><img src=x onerror=${DO}>-->`,
  `<![CDATA[><img src=x onerror=${DO}>]]>`,
  `{{constructor.constructor('${DO}')()}}`,
  `\${${DO}}`,
  `<%= ${DO} %>`,
  `&lt;img src=x onerror=${DO}&gt;`,
  `&#60;img src=x onerror=${DO}&#62;`,
  `%3Cimg src=x onerror=${DO}%3E`,
  `\u003cimg src=x onerror=${DO}\u003e`,
  `<img src=x onerror=${DO}\u2028>`,
  `＜img src=x onerror=${DO}＞`,
  `<img\u0009src=x\u000aonerror=${DO}>`,
  `<<img src=x onerror=${DO}>`,
  `__proto__`,
  `constructor`,
  `\u202e>${DO}=rorrene x=crs gmi<`,
]

/** null: nothing happened. Else what did. `hurt` is set by whatever runs; the others are elements that no page of ours has. */
export const harmIn = (page: Page): Promise<string | null> =>
  page.evaluate(`(() => {
    if (window.hurt !== undefined) return 'a script ran'
    const ALIEN = 'img, iframe, object, embed, video, audio, marquee, math, template, base, x-hurt, meta[http-equiv], ' +
      'body script, style, link[href^="data:"], svg script, animate, form[action]'
    const alien = document.querySelector(ALIEN)
    if (alien !== null) return 'an element was made: ' + alien.outerHTML.slice(0, 100)
    for (const element of document.querySelectorAll('*'))
      for (const { name, value } of element.attributes)
        if (/^on/i.test(name) || (/^(href|src|action|formaction)$/i.test(name) && /^\\s*(javascript|data):/i.test(value)))
          return 'an attribute: ' + name + '=' + value.slice(0, 100)
    return null
  })()`)

/** Every text of an answer turned into a hostile one, so that fields are covered which the library itself would refuse. */
export const poison = (value: unknown, key = '', next = { n: 0 }): unknown => {
  if (Array.isArray(value)) return value.map((item) => poison(item, key, next))
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, poison(inner, name, next)]))
  // Instants and the words that choose what is shown stay: the page would be an empty one.
  if (
    typeof value !== 'string' ||
    /At$|^(at|now|since|from|until|verdict|status|view|to|payloads|encoding|cursor|slots|move)$/.test(key)
  )
    return value
  if (key === 'rights') return value
  return HOSTILE[next.n++ % HOSTILE.length]!
}
