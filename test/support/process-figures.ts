import { readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** What a process holds according to /proc; zeros where there is no /proc or no such process. */
export interface ProcessFigures {
  /** Resident memory in bytes. */
  readonly resident: number
  /** The most resident memory since its start, in bytes. */
  readonly mostResident: number
  readonly descriptors: number
  readonly sockets: number
}

export function figuresOf(pid: number): ProcessFigures {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'utf8')
    const bytes = (field: string): number =>
      1024 * Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1] ?? 0)
    const descriptors = readdirSync(`/proc/${pid}/fd`)
    const sockets = descriptors.filter((fd) => isSocket(`/proc/${pid}/fd/${fd}`)).length
    return {
      resident: bytes('VmRSS'),
      mostResident: bytes('VmHWM'),
      descriptors: descriptors.length,
      sockets,
    }
  } catch {
    return { resident: 0, mostResident: 0, descriptors: 0, sockets: 0 }
  }
}

function isSocket(path: string): boolean {
  try {
    return readlinkSync(path).startsWith('socket:')
  } catch {
    return false // closed in the meantime
  }
}
