/** Builds the dashboard into dist/dashboard: relative addresses, so that it can be mounted anywhere; nothing inline. */
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vite'

/** uPlot asks for number formats in `navigator.language`, which throws where that is no language (`en-US@posix`). */
const inEnglish = {
  name: 'in-english',
  transform: (code: string, id: string) =>
    /uPlot\.esm\.js/.test(id) ? code.replace("domEnv ? nav.language : 'en-US'", "'en'") : undefined,
}

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: './',
  plugins: [inEnglish],
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
