/** An outlet of the sample device, as its API shows it. */
interface Port {
  readonly id: number
  readonly label: string
  readonly enabled: boolean
  readonly watts: number
}

export type PortChange = { readonly label?: string; readonly enabled?: boolean }

export interface Ports {
  readonly all: () => readonly Port[]
  readonly find: (id: number) => Port | undefined
  /** Applies a change; `undefined` if there is no such port. */
  readonly change: (id: number, change: PortChange) => Port | undefined
}

/** The outlets of a small power distribution unit. Changes last until the device stops. */
export function createPorts(count: number): Ports {
  const ports = new Map<number, Port>()
  for (let id = 1; id <= count; id++) {
    ports.set(id, { id, label: `outlet ${id}`, enabled: true, watts: 20 + id * 7 })
  }
  return {
    all: () => [...ports.values()].map(metered),
    find: (id) => {
      const port = ports.get(id)
      return port && metered(port)
    },
    change: (id, change) => {
      const port = ports.get(id)
      if (!port) return undefined
      const changed = { ...port, ...change }
      ports.set(id, changed)
      return metered(changed)
    },
  }
}

function metered(port: Port): Port {
  return port.enabled ? port : { ...port, watts: 0 }
}

/** Parses the JSON body of `PUT /api/ports/1`. Returns a string with the reason if it is invalid. */
export function parsePortChange(text: string): PortChange | string {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    return 'the body is not JSON'
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    return 'the body is not an object'
  const change: { label?: string; enabled?: boolean } = {}
  for (const [key, value] of Object.entries(parsed)) {
    if (key === 'label' && typeof value === 'string' && value.length <= 32) change.label = value
    else if (key === 'enabled' && typeof value === 'boolean') change.enabled = value
    else
      return `bad field ${JSON.stringify(key.slice(0, 32))}: want enabled (boolean) or label (up to 32 characters)`
  }
  return change
}
