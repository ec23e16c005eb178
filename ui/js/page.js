// What the whole page needs, whichever of its parts is shown.

import './focus.js';
import './script_name.js';
import './copy_as.js';
import './keys.js';
