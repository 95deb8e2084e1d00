import { writeFileSync } from 'node:fs'
import { boardText } from './dashboard.ts'

writeFileSync(new URL('postern.json', import.meta.url), boardText())
