// The free boundary in three dimensions as a surface.
"use strict";

function refreshSurface() {}
