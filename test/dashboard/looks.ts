/** Measures of what is really on a page: contrast of every text, and what sticks out to the side. */
import type { Page } from 'playwright-core'

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
