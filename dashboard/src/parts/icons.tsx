/** Line icons, 16 by 16. Each is next to a text label, so screen readers skip it. */
import type { ComponentChildren } from 'preact'

const Icon = ({ children }: { readonly children: ComponentChildren }) => (
  <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
    {children}
  </svg>
)

export const ICONS = {
  overview: (
    <Icon>
      <path d="M1.5 9.5h3l2-6 3 9 2-5h3" />
    </Icon>
  ),
  queues: (
    <Icon>
      <path d="M2 4h12M2 8h12M2 12h7" />
    </Icon>
  ),
  tasks: (
    <Icon>
      <path d="M2 4l1.2 1.2L5.5 3M2 9.5l1.2 1.2 2.3-2.2M8 4.5h6M8 10h6" />
    </Icon>
  ),
  dead: (
    <Icon>
      <path d="M8 2l6.3 11H1.7zM8 6.5v3M8 11.3v.2" />
    </Icon>
  ),
  schedules: (
    <Icon>
      <circle cx="8" cy="8" r="6" />
      <path d="M8 4.5V8l2.4 1.6" />
    </Icon>
  ),
  workers: (
    <Icon>
      <rect x="2" y="2.5" width="12" height="4.5" rx="1.2" />
      <rect x="2" y="9" width="12" height="4.5" rx="1.2" />
      <path d="M4.8 4.8h.2M4.8 11.3h.2" />
    </Icon>
  ),
  jobs: (
    <Icon>
      <path d="M2.5 4.5h11M2.5 8h11M2.5 11.5h6M11 11.5l1.2 1.2 2.3-2.4" />
    </Icon>
  ),
  plus: (
    <Icon>
      <path d="M8 3v10M3 8h10" />
    </Icon>
  ),
  menu: (
    <Icon>
      <path d="M2 4h12M2 8h12M2 12h12" />
    </Icon>
  ),
  search: (
    <Icon>
      <circle cx="7" cy="7" r="4.5" />
      <path d="M10.5 10.5L14 14" />
    </Icon>
  ),
  light: (
    <Icon>
      <circle cx="8" cy="8" r="3" />
      <path d="M8 1v1.5M8 13.5V15M1 8h1.5M13.5 8H15M3 3l1.1 1.1M11.9 11.9L13 13M13 3l-1.1 1.1M4.1 11.9L3 13" />
    </Icon>
  ),
  dark: (
    <Icon>
      <path d="M13.5 9.8A5.8 5.8 0 016.2 2.5a5.8 5.8 0 107.3 7.3z" />
    </Icon>
  ),
  system: (
    <Icon>
      <rect x="2" y="3" width="12" height="8" rx="1.2" />
      <path d="M6 13.5h4" />
    </Icon>
  ),
} as const

/** A holdfast: the organ that anchors kelp. */
export const Mark = () => (
  <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
    <rect width="32" height="32" rx="8" />
    <path d="M16 6v9M16 15c0 6-8 4-9 11M16 15c0 6 8 4 9 11M16 15v11" />
  </svg>
)
