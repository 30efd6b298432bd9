/** Light, dark, or the system's theme; stored in this browser. */
import { signal } from '@preact/signals'

export type Theme = 'system' | 'light' | 'dark'
const THEMES: readonly Theme[] = ['system', 'light', 'dark']
const KEPT_AS = 'holdfast-theme'

const kept = (): Theme => {
  try {
    const value = localStorage.getItem(KEPT_AS)
    return THEMES.find((theme) => theme === value) ?? 'system'
  } catch {
    // The page may not use storage.
    return 'system'
  }
}

const system = matchMedia('(prefers-color-scheme: dark)')
const systemIsDark = signal(system.matches)
system.addEventListener('change', () => {
  systemIsDark.value = system.matches
})

export const theme = signal<Theme>(kept())

/** For drawing on a canvas, which style sheets do not affect. */
export const isDark = (): boolean => theme.value === 'dark' || (theme.value === 'system' && systemIsDark.value)

export const applyTheme = (): void => {
  document.documentElement.dataset['theme'] = theme.value
}

export const setTheme = (chosen: Theme): void => {
  theme.value = chosen
  applyTheme()
  try {
    localStorage.setItem(KEPT_AS, chosen)
  } catch {
    // Then it lasts until the page is closed.
  }
}

export const nextTheme = (): Theme => THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!
