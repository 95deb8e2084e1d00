import { z } from 'zod'

// Compiled validators need `new Function`, which a hardened Node (--disallow-code-generation-from-strings) refuses.
z.config({ jitless: true })

export { z }
