/** Measures of what is really on a page: what axe finds, contrast of every text, what sticks out to the side, and words that are broken. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Page } from 'playwright-core'

/** Read when it is needed: a checkout that has not installed it yet says so here. */
const axe = (): string => readFileSync(join(import.meta.dirname, '../../node_modules/axe-core/axe.min.js'), 'utf8')

export interface AxeFinding {
  readonly rule: string
  readonly at: string
}

/** WCAG 2.2, levels A and AA. Behind a dialog the page is inert. */
export const axeFindings = async (page: Page, which: 'all' | 'colours' = 'all'): Promise<readonly AxeFinding[]> => {
  const rules = which === 'all' ? ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'] : ['color-contrast']
  if (await page.evaluate('window.axe === undefined')) await page.evaluate(axe())
  return page.evaluate(`axe
    .run(document.querySelector('dialog[open]') ?? document, { runOnly: ${JSON.stringify(rules)}, resultTypes: ['violations'] })
    .then(({ violations }) => violations.map(({ id, nodes }) => ({
      rule: id,
      at: nodes.map(({ html }) => html.slice(0, 160)).slice(0, 3).join(' | '),
    })).sort((a, b) => (a.rule < b.rule ? -1 : 1)))`)
}

/** Words of at most 20 letters that stand on two lines. Payloads and ids break anywhere. */
export const brokenWords = (page: Page): Promise<readonly string[]> =>
  page.evaluate(`(() => {
    const broken = []
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    const range = document.createRange()
    while (walker.nextNode()) {
      const node = walker.currentNode
      const element = node.parentElement
      if (element.closest('.unseen, .json, pre, code, noscript, script, option') || !element.checkVisibility()) continue
      if (getComputedStyle(element.closest('thead') ?? element).clipPath !== 'none') continue
      for (const { 0: word, index } of node.data.matchAll(/\\S+/g)) {
        if (word.length > 20 || /[-/]/.test(word)) continue
        range.setStart(node, index)
        range.setEnd(node, index + word.length)
        if (new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1) broken.push(word)
      }
    }
    return broken
  })()`)

export interface Faint {
  readonly text: string
  readonly ratio: number
  readonly colours: string
}

/** Texts that are under the contrast of WCAG AA: 4.5, or 3 where they are large. Buttons that are off are exempt. */
export const faintTexts = (page: Page): Promise<readonly Faint[]> =>
  page.evaluate(`(() => {
    const canvas = document.createElement('canvas')
    canvas.width = canvas.height = 1
    const pen = canvas.getContext('2d', { willReadFrequently: true })
    const rgba = (colour) => {
      pen.clearRect(0, 0, 1, 1)
      pen.fillStyle = colour
      pen.fillRect(0, 0, 1, 1)
      const [r, g, b, a] = pen.getImageData(0, 0, 1, 1).data
      return [r, g, b, a / 255]
    }
    const over = ([r, g, b, a], ground) => [r, g, b].map((part, i) => part * a + ground[i] * (1 - a))
    const groundOf = (element) => {
      const layers = []
      for (let at = element; at !== null; at = at.parentElement) {
        const layer = rgba(getComputedStyle(at).backgroundColor)
        layers.push(layer)
        if (layer[3] === 1) break
      }
      return layers.reduceRight((ground, layer) => over(layer, ground), [255, 255, 255])
    }
    const light = (rgb) => {
      const [r, g, b] = rgb.map((part) => part / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
      return 0.2126 * r + 0.7152 * g + 0.0722 * b
    }
    const faint = []
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    while (walker.nextNode()) {
      const text = walker.currentNode.data.trim()
      const element = walker.currentNode.parentElement
      if (text === '' || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue
      if (element.closest('.unseen, :disabled, noscript, script')) continue
      const style = getComputedStyle(element)
      const size = Number.parseFloat(style.fontSize)
      const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700)
      const ground = groundOf(element)
      const ink = over(rgba(style.color), ground)
      const [high, low] = [light(ink), light(ground)].sort((a, b) => b - a)
      const ratio = (high + 0.05) / (low + 0.05)
      if (ratio < (isLarge ? 3 : 4.5))
        faint.push({ text: text.slice(0, 40), ratio: Math.round(ratio * 100) / 100, colours: style.color + ' on ' + ground })
    }
    return faint
  })()`)

/** Elements that end to the right of the window, unless something around them scrolls or cuts them off. */
export const sticksOut = (page: Page): Promise<readonly string[]> =>
  page.evaluate(`(() => {
    const width = document.documentElement.clientWidth
    if (document.documentElement.scrollWidth <= width) return []
    return [...document.querySelectorAll('body *')]
      .filter((element) => element.getBoundingClientRect().right > width + 0.5)
      .map((element) => element.tagName + '.' + element.className + ' ' + element.textContent.slice(0, 30))
  })()`)
