/** Starts the dashboard. */
import { render } from 'preact'
import 'uplot/dist/uPlot.min.css'
import './styles/tokens.css'
import './styles/base.css'
import './styles/shell.css'
import './styles/parts.css'
import './styles/overview.css'
import './styles/tables.css'
import './styles/filters.css'
import './styles/dialog.css'
import './styles/task.css'
import './styles/narrow.css'
import { App } from './app.tsx'
import { listenToKeys } from './keys.ts'
import { startLive } from './live.ts'
import { loadInfo } from './session.ts'
import { makeHiddenVisible } from './text/visible.ts'
import { applyTheme } from './theme.ts'

makeHiddenVisible()
applyTheme()
listenToKeys()
startLive()
void loadInfo()
render(<App />, document.getElementById('app')!)
