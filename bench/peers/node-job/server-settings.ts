import process from 'node:process'
import type { JobSettings } from '../job.ts'

/** What a server of this folder is started with: its one argument, as JSON. */
export interface ServerSettings extends JobSettings {
  readonly port: number
  readonly devicePort: number
}

/** The settings of this process. */
export function readSettings(): ServerSettings {
  return JSON.parse(process.argv[2] ?? '') as ServerSettings // of `startServer`
}
