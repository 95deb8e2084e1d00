import { writeFileSync } from 'node:fs'
import { dashboardText } from './dashboard.ts'

writeFileSync(new URL('postern.json', import.meta.url), dashboardText())
