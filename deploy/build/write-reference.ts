import { writeFileSync } from 'node:fs'
import { shippedConfiguration } from '../../src/config/first-configuration.ts'
import { referencePage, referenceSchema } from './reference.ts'

const deploy = new URL('../', import.meta.url)

writeFileSync(new URL('configuration.md', deploy), referencePage())
writeFileSync(new URL('postern.schema.json', deploy), referenceSchema())
writeFileSync(new URL('postern.yaml', deploy), shippedConfiguration())
