import type { Figure } from '../figure.ts'
import { programCost } from './program-cost.ts'

export const middle: Figure = {
  id: 'P11',
  title: 'Cost of one request between the connections',
  about:
    'Processor time of all that happens to a request but reading and writing HTTP, in a loop: the gate, the header policy both ways, the place at the device, metrics and the log (to nowhere). 64 requests at a time, one of a thousand tokens in turn; beside it, what a flood past the limit costs.',
  async measure(lab) {
    const forwarded = await programCost(lab, 'middle-program.ts', 'forward')
    const refused = await programCost(lab, 'middle-program.ts', 'refuse')
    return {
      checks: [
        {
          id: 'P11 forwarded',
          what: 'one forwarded request',
          unit: 'µs',
          better: 'less',
          value: forwarded?.median,
          range: forwarded?.range,
          comparable: 'same machine',
        },
        {
          id: 'P11 refused',
          what: 'one refusal (429)',
          unit: 'µs',
          better: 'less',
          value: refused?.median,
          range: refused?.range,
          comparable: 'same machine',
        },
      ],
      charts: [],
      tables: [],
      notes: [],
      faults: [],
    }
  },
}
