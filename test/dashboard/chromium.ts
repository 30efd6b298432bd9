/** A Chromium to test with: yours, the machine's, or the one that npm ships, unpacked once. */
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliDecompressSync } from 'node:zlib'
import type { LaunchOptions } from 'playwright-core'

const MACHINE = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const ROOT = join(import.meta.dirname, '../..')

/** How to launch it. Throws, with the reason, when there is none. */
export const findChromium = (): LaunchOptions => {
  const yours = process.env['HOLDFAST_TEST_CHROMIUM']
  const found = yours ?? MACHINE.find((path) => existsSync(path))
  // The sandbox refuses to start as root, which is what a container often is.
  if (found !== undefined) return { executablePath: found, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] }
  return shipped()
}

/**
 * @sparticuz/chromium would unpack itself into /tmp for everybody, and leave out libraries that a bare machine lacks: done
 * here instead, into the cache of this checkout.
 */
const shipped = (): LaunchOptions => {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    throw new Error(`npm ships no Chromium for ${process.platform}-${process.arch}: set HOLDFAST_TEST_CHROMIUM`)
  const packed = join(ROOT, 'node_modules/@sparticuz/chromium')
  const { version } = JSON.parse(readFileSync(join(packed, 'package.json'), 'utf8')) as { version: string }
  const folder = join(ROOT, 'node_modules/.cache', `chromium-${version}`)
  if (!existsSync(join(folder, 'chromium'))) unpack(join(packed, 'bin'), folder)
  writeFileSync(join(folder, 'fonts/fonts.conf'), fontsConf(join(folder, 'fonts')))
  return {
    executablePath: join(folder, 'chromium'),
    args: ['--headless=shell', '--no-sandbox', '--disable-dev-shm-usage'],
    env: {
      ...(process.env as Record<string, string>),
      LD_LIBRARY_PATH: join(folder, 'al2023/lib'),
      FONTCONFIG_PATH: join(folder, 'fonts'),
    },
  }
}

/** The font that comes along first: pages look the same on every machine, also on one without fonts. */
const fontsConf = (folder: string): string => `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${folder}</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>${folder}/cache</cachedir>
  <alias binding="strong"><family>system-ui</family><prefer><family>Open Sans</family></prefer></alias>
  <alias binding="strong"><family>sans-serif</family><prefer><family>Open Sans</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
`

const unpack = (from: string, to: string): void => {
  const mine = `${to}.${process.pid}`
  mkdirSync(mine, { recursive: true })
  const read = (name: string): Buffer => brotliDecompressSync(readFileSync(join(from, `${name}.br`)))
  for (const name of ['fonts.tar', 'swiftshader.tar', 'al2023.tar'])
    execFileSync('tar', ['-x', '-C', mine], { input: read(name) })
  writeFileSync(join(mine, 'chromium'), read('chromium'), { mode: 0o755 })
  try {
    renameSync(mine, to)
  } catch {
    // Another process was quicker.
    rmSync(mine, { recursive: true, force: true })
  }
}
