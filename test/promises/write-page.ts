import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisesPage } from './page.ts'

const root = join(import.meta.dirname, '../..')

writeFileSync(join(root, 'docs/promises.md'), promisesPage(root))
