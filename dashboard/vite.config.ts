/** Builds the dashboard into dist/dashboard: relative addresses, so that it can be mounted anywhere; nothing inline. */
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: fileURLToPath(new URL('../dist/dashboard', import.meta.url)),
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The oldest that know light-dark() and <dialog>.
    target: ['chrome123', 'firefox120', 'safari17.5'],
  },
})
